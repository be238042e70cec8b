/** Choices that follow from a seed alone: the same seed, the same choices in the same order. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  /** True with this probability. */
  chance(probability: number): boolean
  /** One of these. @throws Error if there is none */
  pick<T>(items: readonly T[]): T
  /** One of these, the last ones more often than the first. @throws Error if there is none */
  pickLate<T>(items: readonly T[]): T
  /** One of the keys, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
}

/** Makes the choices of a seed (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const at = <T>(items: readonly T[], fraction: number): T => {
    const found = items[Math.floor(fraction * items.length)]
    if (found === undefined) throw new Error('nothing to choose from')
    return found
  }
  return {
    next,
    int: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => at(items, next()),
    pickLate: (items) => at(items, Math.max(next(), next(), next())),
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][]
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [key, weight] of entries) {
        rest -= weight
        if (rest < 0) return key
      }
      return at(entries, 0)[0]
    },
  }
}
