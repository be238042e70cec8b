import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer, get as getSecure } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { writeBlob } from '../../src/http/blob-body.ts'
import type { OpenBlob } from '../../src/store/blob-store.ts'
import { createTestAuthority } from '../tls-fixture.ts'

const MIB = 1024 * 1024

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** A blob of these bytes that claims a size; reads happen a little later, as those of a disk. */
function blobOf(bytes: Buffer, { size = bytes.length, failAt = Number.POSITIVE_INFINITY } = {}): OpenBlob {
  return {
    digest: sha256(bytes),
    size,
    async read(buffer, position, length) {
      await new Promise((resolve) => setImmediate(resolve))
      if (position >= failAt) throw new MirrorError('STORAGE_FAILED', 'the disk', { operation: 'read' })
      const part = bytes.subarray(position, position + Math.min(length, buffer.length))
      buffer.set(part)
      return part.length
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

/** What became of one `writeBlob`. */
interface Written {
  readonly sent: number
  readonly error: unknown
}

interface BlobServer extends AsyncDisposable {
  readonly port: number
  /** Of each request, in the order of their ends. */
  readonly written: Written[]
}

/** Serves `blobs` by the number in the path. */
async function serve(
  blobs: readonly OpenBlob[],
  tls?: { cert: string; key: string },
  part?: { start: number; end: number },
): Promise<BlobServer> {
  const written: Written[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const blob = blobs[Number(request.url?.slice(1))]
    if (blob === undefined) throw new Error('no such blob')
    const { start, end } = part ?? { start: 0, end: blob.size }
    response.writeHead(200, { 'Content-Length': end - start })
    let sent = 0
    const onSent = (bytes: number): void => {
      sent += bytes
    }
    const error = await writeBlob(response, blob, { start, end, onSent }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    written.push({ sent, error })
  }
  const listener: RequestListener = (request, response) => void answer(request, response)
  const server = tls === undefined ? createServer(listener) : createHttpsServer(tls, listener)
  // A connection that is kept is kept for ever: whoever waits for the rest of a torn answer would be seen.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    written,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** What a client takes from an answer; rejects if the connection breaks. */
async function download(port: number, path: string, ca?: string, agent: Agent | false = false): Promise<Buffer> {
  const options = { host: '127.0.0.1', servername: 'localhost', port, path, agent }
  const request = ca === undefined ? get(options) : getSecure({ ...options, ca })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

describe('a blob as the body of an answer', () => {
  it.each([0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 3 * MIB + 7])(
    'of %i bytes arrives whole',
    async (size) => {
      const bytes = randomBytes(size)
      await using server = await serve([blobOf(bytes)])
      expect(sha256(await download(server.port, '/0'))).toBe(sha256(bytes))
      expect(server.written).toEqual([{ sent: size, error: undefined }])
    },
  )

  it('arrives as the range that was asked for', async () => {
    const bytes = randomBytes(2 * MIB)
    await using server = await serve([blobOf(bytes)], undefined, { start: 300_001, end: 1_700_003 })
    expect(sha256(await download(server.port, '/0'))).toBe(sha256(bytes.subarray(300_001, 1_700_003)))
  })

  it.each(['http', 'https'])(
    'twenty clients at a time get twenty different blobs, byte for byte, over %s',
    async (scheme) => {
      const authority = scheme === 'https' ? await createTestAuthority() : undefined
      const contents = Array.from({ length: 20 }, () => randomBytes(MIB + 12_345))
      await using server = await serve(
        contents.map((bytes) => blobOf(bytes)),
        await authority?.issue(['localhost']),
      )
      for (let round = 0; round < 2; round++) {
        const received = await Promise.all(contents.map((_, i) => download(server.port, `/${i}`, authority?.caPem)))
        expect(received.map(sha256)).toEqual(contents.map(sha256))
      }
    },
  )

  it('clients that leave in the middle spoil nothing for the others', async () => {
    const contents = Array.from({ length: 6 }, () => randomBytes(4 * MIB))
    // More than all buffers on the way take, so that it is left in the middle for sure.
    const left = blobOf(randomBytes(64 * MIB))
    await using server = await serve([...contents.map((bytes) => blobOf(bytes)), left])
    const leave = async (): Promise<void> => {
      const request = get({ host: '127.0.0.1', port: server.port, path: `/${contents.length}`, agent: false })
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      await once(response, 'data')
      response.destroy()
    }
    for (let round = 0; round < 3; round++) {
      const staying = contents.map((_, i) => download(server.port, `/${i}`))
      const leaving = contents.map(leave)
      expect((await Promise.all(staying)).map(sha256)).toEqual(contents.map(sha256))
      await Promise.all(leaving)
    }
    await expect.poll(() => server.written.length).toBe(36)
    // That a client has left is no failure of ours.
    expect(server.written.map(({ error }) => error)).toEqual(Array(36).fill(undefined))
    expect(server.written.filter(({ sent }) => sent < 64 * MIB && sent !== 4 * MIB).length).toBe(18)
  })

  it.each([1, 4])(
    'is read at the pace of %i clients that do not take it, and arrives whole when they do',
    async (clients) => {
      const contents = Array.from({ length: clients }, () => randomBytes(32 * MIB))
      const readTo = contents.map(() => 0)
      const blobs = contents.map((bytes, i): OpenBlob => {
        const blob = blobOf(bytes)
        const read: OpenBlob['read'] = (buffer, position, length) => {
          readTo[i] = position
          return blob.read(buffer, position, length)
        }
        return { ...blob, read }
      })
      await using server = await serve(blobs)
      const responses = await Promise.all(
        contents.map(async (_, i) => {
          const request = get({ host: '127.0.0.1', port: server.port, path: `/${i}`, agent: false })
          const [response] = (await once(request, 'response')) as [IncomingMessage]
          return response.pause()
        }),
      )
      // Until nothing moves any more: the buffers on the way are full.
      let before = ''
      const moved = (): boolean => {
        const last = before
        before = readTo.join()
        return last !== before || readTo.includes(0)
      }
      await expect.poll(moved, { interval: 200, timeout: 20_000 }).toBe(false)
      for (const position of readTo) expect(position).toBeLessThan(24 * MIB)
      const hashes = responses.map(async (response) => {
        const hash = createHash('sha256')
        for await (const piece of response) hash.update(piece)
        return hash.digest('hex')
      })
      expect(await Promise.all(hashes)).toEqual(contents.map(sha256))
    },
  )
})

describe('no client takes a part for the whole, nor waits for the rest on a connection that is kept', () => {
  const keeping = new Agent({ keepAlive: true })
  afterAll(() => keeping.destroy())

  it('a blob that is shorter than it should be tears the connection', async () => {
    const bytes = randomBytes(MIB)
    await using server = await serve([blobOf(bytes, { size: MIB + 1 })])
    await expect(download(server.port, '/0', undefined, keeping)).rejects.toThrow(/aborted|hang up|reset/)
    expect(server.written).toMatchObject([{ error: { code: 'STORAGE_FAILED' } }])
  })

  it('so does a disk that fails in the middle', async () => {
    await using server = await serve([blobOf(randomBytes(3 * MIB), { failAt: MIB })])
    await expect(download(server.port, '/0', undefined, keeping)).rejects.toThrow(/aborted|hang up|reset/)
    expect(server.written).toMatchObject([{ error: { code: 'STORAGE_FAILED', message: 'the disk' } }])
  })

  it('so does a disk that fails before the first byte', async () => {
    await using server = await serve([blobOf(randomBytes(MIB), { failAt: 0 })])
    await expect(download(server.port, '/0', undefined, keeping)).rejects.toThrow(/aborted|hang up|reset/)
  })
})
