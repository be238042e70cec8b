import { createHash } from 'node:crypto'
import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import type { TestMirror } from './mirror-fixture.ts'

/** How a body ended. */
export interface DownloadEnd {
  readonly bytes: number
  /** Of the bytes that came, lower-case hexadecimal. */
  readonly sha256: string
  /** The body ended as HTTP says; false if the connection broke or was given up. */
  readonly complete: boolean
}

/** A body on its way to a client that keeps only a hash of it, however large it is. */
export interface Download {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Bytes so far. */
  readonly received: number
  /** Settles when the body ends, well or badly; never rejects. */
  readonly end: Promise<DownloadEnd>
  /** Takes no more from the connection until `resume`. */
  pause(): void
  resume(): void
  /** Breaks the connection. */
  abort(): void
  /** Waits until so many bytes have come, or the end. */
  until(bytes: number): Promise<void>
}

/** How to download. */
export interface DownloadOptions {
  /** Takes no more than this on average. */
  readonly bytesPerSecond?: number
  /** Default: a connection of its own, closed afterwards. */
  readonly agent?: Agent
}

/** Asks a mirror for a path and resolves with the head of the answer. Rejects if none comes. */
export async function openDownload(
  mirror: Pick<TestMirror, 'url' | 'caPem'>,
  path: string,
  { bytesPerSecond, agent }: DownloadOptions = {},
): Promise<Download> {
  const options: RequestOptions = {
    host: '127.0.0.1',
    servername: 'localhost',
    port: new URL(mirror.url).port,
    path,
    ca: mirror.caPem,
    agent: agent ?? false,
  }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(options, resolve).on('error', reject).end()
  })
  return new HashedDownload(response, bytesPerSecond)
}

class HashedDownload implements Download {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly end: Promise<DownloadEnd>
  received = 0
  readonly #response: IncomingMessage
  readonly #bytesPerSecond: number | undefined
  readonly #hash = createHash('sha256')
  readonly #started = performance.now()

  constructor(response: IncomingMessage, bytesPerSecond: number | undefined) {
    this.#response = response
    this.#bytesPerSecond = bytesPerSecond
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    const { promise, resolve } = Promise.withResolvers<DownloadEnd>()
    this.end = promise
    response.on('data', (chunk: Buffer) => this.#take(chunk))
    response.on('error', () => undefined)
    response.once('close', () =>
      resolve({ bytes: this.received, sha256: this.#hash.digest('hex'), complete: response.complete }),
    )
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  abort(): void {
    this.#response.destroy()
  }

  async until(bytes: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.received >= bytes) resolve()
      }
      this.#response.on('data', look)
      this.#response.once('close', resolve)
      look()
    })
  }

  #take(chunk: Buffer): void {
    this.received += chunk.length
    this.#hash.update(chunk)
    if (this.#bytesPerSecond === undefined) return
    const aheadMs = (1_000 * this.received) / this.#bytesPerSecond - (performance.now() - this.#started)
    if (aheadMs < 5) return
    this.#response.pause()
    setTimeout(() => this.#response.resume(), aheadMs)
  }
}
