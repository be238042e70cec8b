import { performance } from 'node:perf_hooks'
import { pipeline, Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { type Answer, findHeader } from './answer.ts'
import { type FailureContext, failureOf, invalid, torn, WaitExceeded } from './failure.ts'
import type { UpstreamObserver } from './observer.ts'

/** How to read a body. */
export interface BodyOptions {
  readonly signal: AbortSignal
  readonly observer: UpstreamObserver
  /** How long the upstream may be silent. Time in which nobody reads does not count. */
  readonly idleTimeoutMs: number
  /** The average over each `idleTimeoutMs` of waiting must not be lower; 0 for none. */
  readonly minBytesPerSecond: number
}

const maxEncodings = 4

/** The content codings of an answer, outermost last; `identity` left out. */
export function contentEncodings(answer: Answer): readonly string[] {
  const header = findHeader(answer, 'content-encoding') ?? ''
  return header
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
}

/**
 * Reads the body of an answer, decoded. Leaving the loop early closes the connection. Memory does not depend on the
 * body's size.
 * @throws MirrorError `UPSTREAM_INVALID` for a coding that is unknown or broken; AttemptFailed if the body is torn,
 *   silent or too slow
 */
export async function* readBody(answer: Answer, options: BodyOptions): AsyncGenerator<Buffer, void, undefined> {
  const context: FailureContext = { url: answer.url, signal: options.signal }
  try {
    const decoders = createDecoders(answer)
    const wire = readWire(answer, options)
    yield* decoders.length === 0 ? wire : decode(wire, decoders, context)
  } finally {
    answer.body.destroy()
  }
}

async function* decode(
  wire: AsyncIterable<Buffer>,
  decoders: readonly Transform[],
  { url, signal }: FailureContext,
): AsyncGenerator<Buffer, void, undefined> {
  let wireError: unknown
  const source = Readable.from(wire, { objectMode: false }).on('error', (error) => {
    wireError = error
  })
  const decoded = pipeline([source, ...decoders], () => undefined)
  try {
    for await (const chunk of Readable.prototype.iterator.call(decoded)) yield chunk
  } catch (error) {
    if (wireError !== undefined) throw wireError
    if (signal.aborted) throw failureOf(error, { url, signal })
    // A body without a stated length just ends when it is torn; only its coding shows that.
    if (error instanceof Error && 'code' in error && error.code === 'Z_BUF_ERROR') {
      throw torn(url, 'the answer broke off', error)
    }
    throw invalid(url, 'its content encoding is broken', error)
  }
}

function createDecoders(answer: Answer): Transform[] {
  const encodings = contentEncodings(answer)
  if (encodings.length > maxEncodings) throw invalid(answer.url, `it has ${encodings.length} content encodings`)
  return encodings.toReversed().map((encoding) => {
    switch (encoding) {
      case 'gzip':
      case 'x-gzip':
        return createGunzip()
      case 'deflate':
        return createInflate()
      case 'br':
        return createBrotliDecompress()
      case 'zstd':
        return createZstdDecompress()
      default:
        throw invalid(answer.url, 'its content encoding is not one of gzip, deflate, br and zstd')
    }
  })
}

async function* readWire(answer: Answer, options: BodyOptions): AsyncGenerator<Buffer, void, undefined> {
  const { body, url } = answer
  const { observer, signal, idleTimeoutMs } = options
  const rate = new MinimumRate(options)
  const chunks = body.iterator({ destroyOnReturn: true })
  let waiting = false
  // One timer for all waits: it is set back for each, which costs a tenth of a new one.
  const timer = setTimeout(() => {
    if (waiting) body.destroy(new WaitExceeded(`no byte came for ${idleTimeoutMs} ms`, idleTimeoutMs))
  }, idleTimeoutMs)
  try {
    for (;;) {
      waiting = true
      timer.refresh()
      const started = performance.now()
      const next = await chunks.next()
      waiting = false
      if (next.done === true) return
      observer.received(url.host, next.value.length)
      rate.count(next.value.length, performance.now() - started)
      yield next.value
    }
  } catch (error) {
    if (error instanceof WaitExceeded || signal.aborted) throw failureOf(error, { url, signal })
    throw torn(url, 'the answer broke off', error)
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
}

/** Measures only the time in which we wait for the upstream, so a slow reader of ours is never held against it. */
class MinimumRate {
  readonly #windowMs: number
  readonly #minBytesPerSecond: number
  #waitedMs = 0
  #bytes = 0

  constructor(options: BodyOptions) {
    this.#windowMs = options.idleTimeoutMs
    this.#minBytesPerSecond = options.minBytesPerSecond
  }

  /** @throws WaitExceeded when a window closes under the minimum */
  count(bytes: number, waitedMs: number): void {
    this.#bytes += bytes
    this.#waitedMs += waitedMs
    if (this.#waitedMs < this.#windowMs) return
    const bytesPerSecond = Math.round((this.#bytes * 1_000) / this.#waitedMs)
    if (bytesPerSecond < this.#minBytesPerSecond) {
      throw new WaitExceeded(
        `${bytesPerSecond} bytes/s are under the minimum of ${this.#minBytesPerSecond}`,
        Math.round(this.#waitedMs),
      )
    }
    this.#waitedMs = 0
    this.#bytes = 0
  }
}
