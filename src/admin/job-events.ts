import { ReadableStream } from 'node:stream/web'
import type { Context } from 'hono'
import { exchangeOf } from '../http/exchange.ts'
import type { AdminEnv } from './admin-env.ts'
import type { Fixed } from './operations.ts'
import type { JobEvent } from './schema/jobs.ts'

/** Fronts and clients close a connection on which nothing comes. */
const KEEP_ALIVE_MS = 15_000
const FINAL_STATES: readonly string[] = ['done', 'failed', 'cancelled']

/**
 * Sends what happens to a job as server-sent events, until its last one, the client leaves, or the mirror stops. Nothing
 * is read ahead: whoever reads slowly keeps one event here, and the backlog of `events`.
 */
export function sendJobEvents(
  context: Context<AdminEnv>,
  events: (signal: AbortSignal) => AsyncIterable<Fixed<JobEvent>>,
  stopping: AbortSignal,
  keepAliveMs = KEEP_ALIVE_MS,
): Response {
  const { incoming, outgoing } = context.env
  const left = new AbortController()
  outgoing.once('close', () => left.abort())
  if (outgoing.destroyed) left.abort()
  const exchange = exchangeOf(incoming)
  const onSent = (bytes: number): void => {
    exchange.sentBytes += bytes
  }
  const signal = AbortSignal.any([left.signal, stopping])
  const frames = streamFrames(events(signal), { signal, keepAliveMs, onSent })
  return new Response(ReadableStream.from(frames) as BodyInit, {
    headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
  })
}

interface FrameOptions {
  readonly signal: AbortSignal
  readonly keepAliveMs: number
  readonly onSent: (bytes: number) => void
}

async function* streamFrames(
  events: AsyncIterable<Fixed<JobEvent>>,
  { signal, keepAliveMs, onSent }: FrameOptions,
): AsyncGenerator<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]()
  try {
    let next = iterator.next()
    while (!signal.aborted) {
      const result = await withinTime(next, keepAliveMs, signal)
      if (result?.done) return
      const frame = Buffer.from(result === undefined ? ': \n\n' : formatEvent(result.value))
      onSent(frame.length)
      yield frame
      if (result === undefined) continue
      if (isLast(result.value)) return
      next = iterator.next()
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    // Not awaited: it may wait for an event that never comes.
    iterator.return?.()?.catch(() => undefined)
  }
}

/** Undefined when nothing came in time, or the signal fired. */
async function withinTime<T>(promise: Promise<T>, ms: number, signal: AbortSignal): Promise<T | undefined> {
  const waited = Promise.withResolvers<undefined>()
  const end = (): void => waited.resolve(undefined)
  const timer = setTimeout(end, ms)
  signal.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([promise, waited.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

function formatEvent({ event, data }: Fixed<JobEvent>): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

function isLast({ event, data }: Fixed<JobEvent>): boolean {
  return event === 'job' && FINAL_STATES.includes(data.state)
}
