import type { ServerResponse } from 'node:http'
import { MirrorError } from '../errors.ts'
import type { BlobReader } from '../store/blob-store.ts'
import type { ByteRange } from './byte-range.ts'

/** Which bytes to write, and who counts them. */
export interface BodyPart extends ByteRange {
  /** Called with the size of each piece that has left for the socket. */
  readonly onSent: (bytes: number) => void
}

/** Fits the second-level cache of common processors; larger ones measured slower. */
const BUFFER_BYTES = 256 * 1024
/** Reading ahead pays with few streams only. */
const MAX_STREAMS_READING_AHEAD = 2
const MAX_IDLE_BUFFERS = 16

const CLIENT_LEFT = new Error('the client has left')

const idle: Buffer[] = []
let streams = 0

/**
 * Writes a range of a blob as the body of an answer, at the pace of the client, through a few reused buffers: memory
 * does not grow with the archive. An `end` of Infinity means: up to where `blob` ends. Ends the answer cleanly only when
 * every byte was written; if the blob is shorter than it should be or cannot be read, the connection is torn, so that no
 * client takes a part for the whole. Returns early if the client leaves.
 * @throws what `blob.read` throws; MirrorError `STORAGE_FAILED` if it is too short
 */
export async function writeBlob(outgoing: ServerResponse, blob: BlobReader, part: BodyPart): Promise<void> {
  streams++
  const buffers = [takeBuffer(), ...(streams <= MAX_STREAMS_READING_AHEAD ? [takeBuffer()] : [])]
  let position = part.start
  try {
    let written: Promise<void> = Promise.resolve()
    for (let turn = 0; position < part.end; turn++) {
      const buffer = buffers[turn % buffers.length]
      if (buffer === undefined) break
      // With one buffer it must be on the wire before it is filled again; with two the other one is.
      if (buffers.length === 1) await written
      const wanted = Math.min(buffer.length, part.end - position)
      const count = await unlessLeft(outgoing, blob.read(buffer, position, wanted))
      if (count === 0 && part.end === Number.POSITIVE_INFINITY) break
      if (count === 0) throw endsEarly(position, part.end)
      await written
      written = write(outgoing, buffer.subarray(0, count)).then(() => part.onSent(count))
      written.catch(() => undefined)
      position += count
    }
    await written
    outgoing.end()
  } catch (error) {
    outgoing.destroy()
    if (error !== CLIENT_LEFT) throw error
  } finally {
    streams--
    // A write that never finished may still read its buffer: only after a clean end is it ours again.
    if (outgoing.writableEnded) idle.push(...buffers.slice(0, MAX_IDLE_BUFFERS - idle.length))
  }
}

function endsEarly(position: number, end: number): MirrorError {
  const message = `the file ends at ${position} of ${end} bytes: it was cut while it was served`
  return new MirrorError('STORAGE_FAILED', message, { operation: 'read' })
}

function takeBuffer(): Buffer {
  return idle.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES)
}

/** The outcome of `work`, or `CLIENT_LEFT` when the connection is gone before. */
function unlessLeft<T>(outgoing: ServerResponse, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(CLIENT_LEFT)
    outgoing.once('close', onClose)
    work.then(resolve, reject).finally(() => outgoing.off('close', onClose))
    if (outgoing.destroyed) onClose()
  })
}

/** Resolves when the bytes have left for the socket; rejects with `CLIENT_LEFT` when the connection is gone. */
function write(outgoing: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(CLIENT_LEFT)
    outgoing.once('close', onClose)
    outgoing.write(bytes, (error) => {
      outgoing.off('close', onClose)
      if (error) reject(CLIENT_LEFT)
      else resolve()
    })
    if (outgoing.destroyed) onClose()
  })
}
