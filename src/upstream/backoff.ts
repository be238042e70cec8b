import { setTimeout as delay } from 'node:timers/promises'

const firstBackoffMs = 200
const maxBackoffMs = 2_000

/** How long to wait before try `attempt` (1 is the first repetition): exponential, with full jitter, in ms. */
export function backoffMs(attempt: number, random: () => number): number {
  return random() * Math.min(maxBackoffMs, firstBackoffMs * 2 ** (attempt - 1))
}

/**
 * Reads `Retry-After` (RFC 9110, 10.2.3: seconds or a date) as ms from `now`; undefined if it is missing or unreadable.
 */
export function parseRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  // Date.parse takes much that is no date of HTTP; all of those begin with a day's name.
  if (!/^[A-Z][a-z]{2,8},? /.test(header)) return undefined
  // The oldest of the three formats names no zone, and means GMT.
  const date = Date.parse(header.endsWith('GMT') ? header : `${header} GMT`)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Waits; rejects when the signal fires. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false })
}
