import { finished, type Readable } from 'node:stream'
import { setImmediate as endOfTurn } from 'node:timers/promises'

/** Fits the second-level cache of common processors, where it is hashed and written; larger ones measured no better. */
const BATCH_BYTES = 256 * 1024
/** As many as one system call writes: of an upstream that sends byte by byte too. */
const BATCH_CHUNKS = 1024
/** So long a batch waits for more; the first one goes at once, so that somebody hears of it. */
const GATHER_MS = 5

/**
 * Takes what a stream brings in batches: it comes in records of TLS, 16 KB each, and every step on its way costs as much
 * for one of them as for many. Nothing is copied. Reads one batch ahead, no more.
 */
export class ChunkBatches {
  readonly #stream: Readable
  #chunks: Buffer[] = []
  #bytes = 0
  #end: { readonly error: Error | null | undefined } | undefined
  #first = true
  #changed = (): void => undefined

  constructor(stream: Readable) {
    this.#stream = stream
    stream.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk)
      this.#bytes += chunk.length
      if (this.#isFull()) stream.pause()
      this.#changed()
    })
    finished(stream, { writable: false }, (error) => {
      this.#end = { error }
      this.#changed()
    })
  }

  /** True while nothing has come that was not taken. */
  get empty(): boolean {
    return this.#chunks.length === 0
  }

  /** Waits for more; undefined at the end. @throws what the stream failed with, after all that it brought before */
  async next(): Promise<Buffer[] | undefined> {
    await this.#until(() => !this.empty)
    if (this.#first) await endOfTurn()
    else await this.#until(() => this.#isFull(), GATHER_MS)
    this.#first = false
    if (this.empty) {
      if (this.#end?.error) throw this.#end.error
      return undefined
    }
    const chunks = this.#chunks
    this.#chunks = []
    this.#bytes = 0
    this.#stream.resume()
    return chunks
  }

  #isFull(): boolean {
    return this.#bytes >= BATCH_BYTES || this.#chunks.length >= BATCH_CHUNKS
  }

  /** Waits for `condition`, the end of the stream or the time limit. */
  async #until(condition: () => boolean, limitMs?: number): Promise<void> {
    if (condition() || this.#end !== undefined) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = limitMs === undefined ? undefined : setTimeout(resolve, limitMs)
    this.#changed = () => {
      if (condition() || this.#end !== undefined) resolve()
    }
    await promise
    this.#changed = () => undefined
    clearTimeout(timer)
  }
}

/** The bytes of a batch. */
export function lengthOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.length, 0)
}
