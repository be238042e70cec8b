import type { ServerResponse } from 'node:http'
import type { OpenBlob } from '../store/blob-store.ts'
import type { ByteRange } from './byte-range.ts'

/** Fits the second-level cache of common processors; larger ones measured slower. */
const BUFFER_BYTES = 256 * 1024
/** Reading ahead pays with few streams only. */
const MAX_STREAMS_READING_AHEAD = 2
const MAX_IDLE_BUFFERS = 16

const idle: Buffer[] = []
let streams = 0

/**
 * Writes a range of a blob as the body of an answer, at the pace of the client, through a few reused buffers: memory
 * does not grow with the archive. Ends the answer cleanly only when every byte was written; if the blob is shorter than
 * it should be or the disk fails, the connection is torn, so that no client takes a part for the whole.
 * @returns the number of bytes written; fewer than the range if the client left
 * @throws MirrorError `STORAGE_FAILED`
 */
export async function writeBlob(outgoing: ServerResponse, blob: OpenBlob, range: ByteRange): Promise<number> {
  streams++
  const buffers = [takeBuffer(), ...(streams <= MAX_STREAMS_READING_AHEAD ? [takeBuffer()] : [])]
  let position = range.start
  try {
    let written: Promise<void> = Promise.resolve()
    for (let turn = 0; position < range.end; turn++) {
      const buffer = buffers[turn % buffers.length]
      if (buffer === undefined) break
      // With one buffer it must be on the wire before it is filled again; with two the other one is.
      if (buffers.length === 1) await written
      const count = await blob.read(buffer, position, Math.min(buffer.length, range.end - position))
      if (count === 0) throw new Error(`blob ${blob.digest} ends at ${position} of ${blob.size} bytes`)
      await written
      written = write(outgoing, buffer.subarray(0, count))
      written.catch(() => undefined)
      position += count
    }
    await written
    outgoing.end()
    return position - range.start
  } catch (error) {
    const clientLeft = outgoing.destroyed
    outgoing.destroy()
    if (clientLeft) return position - range.start
    throw error
  } finally {
    streams--
    // A write that never finished may still read its buffer: only after a clean end is it ours again.
    if (outgoing.writableEnded) idle.push(...buffers.slice(0, MAX_IDLE_BUFFERS - idle.length))
  }
}

function takeBuffer(): Buffer {
  return idle.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES)
}

/** Resolves when the bytes have left for the socket; rejects when the connection is gone. */
function write(outgoing: ServerResponse, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => reject(new Error('the client has left'))
    outgoing.once('close', onClose)
    outgoing.write(bytes, (error) => {
      outgoing.off('close', onClose)
      if (error) reject(error)
      else resolve()
    })
    if (outgoing.destroyed) onClose()
  })
}
