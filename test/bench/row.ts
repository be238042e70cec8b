import type { Spread } from './rounds.ts'

/** One line of the report: what was measured, and the target if there is one. */
export interface Row {
  readonly what: string
  /** As people read it, e.g. `>= 0.60`. */
  readonly target?: string
  readonly measured: string
  readonly met?: boolean
}

/** One part of the report. */
export interface Section {
  readonly title: string
  /** How it was measured, in Markdown. */
  readonly method: string
  readonly rows: readonly Row[]
}

/** A ratio that must not be less than `least`. */
export function atLeast(what: string, least: number, ratio: Spread): Row {
  return { what, target: `≥ ${least.toFixed(2)} x`, measured: times(ratio), met: ratio.median >= least }
}

/** A ratio that must not be more than `most`. */
export function atMost(what: string, most: number, ratio: Spread): Row {
  return { what, target: `≤ ${most.toFixed(2)} x`, measured: times(ratio), met: ratio.median <= most }
}

/** A quantity that must be below `limit`. */
export function below(what: string, limit: number, unit: string, spread: Spread): Row {
  return { what, target: `< ${limit} ${unit}`, measured: quantity(spread, unit), met: spread.median < limit }
}

/** A quantity without a target. */
export function told(what: string, measured: string): Row {
  return { what, measured }
}

/** `0.72 x [0.70..0.75]` */
export function times({ median, min, max }: Spread): string {
  return `${median.toFixed(2)} x [${min.toFixed(2)}..${max.toFixed(2)}]`
}

/** `12.3 MB [11.9..14.0]` */
export function quantity({ median, min, max }: Spread, unit: string): string {
  const digits = median >= 1_000 ? 0 : median >= 100 ? 1 : median >= 1 ? 2 : 3
  const text = (value: number): string => value.toFixed(digits)
  return `${text(median)} ${unit} [${text(min)}..${text(max)}]`
}
