/** How much of the disk may be used. Bytes; undefined for no limit. */
export interface SpaceLimits {
  /** Everything stored, and what is on its way in. */
  readonly maxSize: number | undefined
  /** What stays free on the disk, whoever else uses it. */
  readonly minFree: number | undefined
}

/** A disk, and what is used of it. Bytes. */
export interface SpaceUse {
  /** Disk blocks of everything stored. */
  readonly used: number
  /** Reserved by what is on its way in, whether it is on the disk yet or not. */
  readonly reserved: number
  /** The part of it that is not on the disk yet. */
  readonly unwritten: number
  /** Free on the disk; infinite where nobody asked. */
  readonly free: number
}

/** Above this part of the limit, space is made in the background … */
const HIGH = 0.95
/** … until no more than this part is used. */
const LOW = 0.9

/** The part of the limit that is left to evidence, but no more than so many bytes: it is small, and never refused. */
const EVIDENCE = 0.01
const MAX_EVIDENCE = 16 * 1024 * 1024

/** By how many bytes `more` would break a limit; zero or less if it fits. */
export function excess({ maxSize, minFree }: SpaceLimits, use: SpaceUse, more: number): number {
  const size = maxSize === undefined ? -Infinity : use.used + use.reserved + more - maxSize
  const disk = minFree === undefined ? -Infinity : minFree - (use.free - use.unwritten - more)
  return Math.max(size, disk)
}

/** The same limits, `high` or `low` water marks of them. */
export function waterMark({ maxSize, minFree }: SpaceLimits, mark: 'high' | 'low'): SpaceLimits {
  const part = mark === 'high' ? HIGH : LOW
  return {
    maxSize: maxSize === undefined ? undefined : Math.round(maxSize * part),
    minFree: minFree === undefined ? undefined : Math.round(minFree * (2 - part)),
  }
}

/** What is left of the same limits to archives: evidence that comes while they are on their way in has its own room. */
export function archiveLimits({ maxSize, minFree }: SpaceLimits): SpaceLimits {
  if (maxSize === undefined) return { maxSize, minFree }
  return { maxSize: maxSize - Math.min(Math.round(maxSize * EVIDENCE), MAX_EVIDENCE), minFree }
}
