/** A stretch of real time, in milliseconds of `performance.now()`. */
export interface Span {
  readonly from: number
  readonly to: number
}

/**
 * How long something held. The change at each end takes a moment, in which both answers are right: it held for certain
 * from `certainFrom` to `certainTo`, perhaps from `from` to `to`. Infinity while it still holds.
 */
export interface Period {
  from: number
  certainFrom: number
  certainTo: number
  to: number
}

/** A period that begins with what `change` does. `note` has it before: an answer may tell of it while it is made. */
export async function beginPeriod(note: (period: Period) => void, change: () => unknown): Promise<void> {
  const end = Number.POSITIVE_INFINITY
  const period = { from: performance.now(), certainFrom: end, certainTo: end, to: end }
  note(period)
  await change()
  period.certainFrom = performance.now()
}

/** Ends a period with what `change` does. */
export async function endPeriod(period: Period, change: () => unknown): Promise<void> {
  period.certainTo = performance.now()
  await change()
  period.to = performance.now()
}

/** True if the period may have held at some moment of the spans. */
export function touches(period: Span, spans: readonly Span[]): boolean {
  return spans.some((span) => period.from <= span.to && span.from <= period.to)
}

/** What is left of the spans after all moments at which one of the periods held for certain. */
export function without(spans: readonly Span[], periods: readonly Period[]): Span[] {
  let left = [...spans]
  for (const { certainFrom, certainTo } of periods) {
    left = left.flatMap(({ from, to }) => {
      if (certainFrom > to || certainTo < from) return [{ from, to }]
      return [
        ...(from < certainFrom ? [{ from, to: certainFrom }] : []),
        ...(certainTo < to ? [{ from: certainTo, to }] : []),
      ]
    })
  }
  return left
}

interface Setting {
  readonly from: number
  to: number
  readonly aheadMs: number
}

/** Messages need a moment to the mirror's process. */
const TOLERANCE_MS = 50

/** How the clock of the mirror ran: with the real one, ahead of it or behind it by what it was set to. */
export class Timeline {
  readonly #settings: Setting[] = [{ from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, aheadMs: 0 }]

  /** By how much the mirror's clock is ahead of the real one now. */
  get aheadMs(): number {
    return this.#settings.at(-1)?.aheadMs ?? 0
  }

  /** Notes that `tell` sets the clock, some time between its call and its end. */
  async set(aheadMs: number, tell: () => Promise<unknown>): Promise<void> {
    const last = this.#settings.at(-1)
    this.#settings.push({ from: performance.now(), to: Number.POSITIVE_INFINITY, aheadMs })
    await tell()
    if (last !== undefined) last.to = performance.now()
  }

  /**
   * When the mirror may have learnt what it still goes by during `span`, if it believes each thing for `limitMs` by its
   * own clock. What was learnt at a time that lies ahead, by that clock, is believed no more. `span` itself is included.
   */
  learnt(span: Span, limitMs: number): Span[] {
    const spans = [span]
    for (const now of this.#settings) {
      const until = Math.min(now.to, span.to)
      const since = Math.max(now.from, span.from)
      if (since > until) continue
      for (const then of this.#settings) {
        const shift = now.aheadMs - then.aheadMs
        const from = Math.max(then.from, since + shift - limitMs - TOLERANCE_MS)
        const to = Math.min(then.to, until + shift + TOLERANCE_MS, until)
        if (from <= to) spans.push({ from, to })
      }
    }
    return spans
  }

  /** The last settings, for people: since when (seconds of real time) the clock was ahead by how much. */
  toString(): string {
    const last = this.#settings.slice(-8)
    return last.map(({ from, aheadMs }) => `${(from / 1_000).toFixed(2)}: ${Math.round(aheadMs / 1_000)} s`).join(', ')
  }
}
