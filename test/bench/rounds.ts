/** Median, least and greatest of a set of numbers. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/**
 * What several candidates did in the same rounds. They are compared round by round: a machine that slows down for a
 * while slows down all of them.
 */
export class Rounds<Name extends string> {
  readonly #values = new Map<Name, number[]>()

  /** Runs every candidate once a round, beginning with another one each time. */
  static async run<Name extends string>(
    count: number,
    candidates: Readonly<Record<Name, () => Promise<number>>>,
  ): Promise<Rounds<Name>> {
    const rounds = new Rounds<Name>()
    const names = Object.keys(candidates) as Name[]
    for (let round = 0; round < count; round++) {
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(round + turn) % names.length]
        if (name !== undefined) rounds.add(name, await candidates[name]())
      }
    }
    return rounds
  }

  add(name: Name, value: number): void {
    this.#values.set(name, [...(this.#values.get(name) ?? []), value])
  }

  spread(name: Name): Spread {
    return spreadOf(this.#values.get(name) ?? [])
  }

  /** Of the ratios of each round. */
  ratio(name: Name, peer: Name): Spread {
    const peers = this.#values.get(peer) ?? []
    return spreadOf((this.#values.get(name) ?? []).map((value, round) => value / (peers[round] ?? Number.NaN)))
  }
}

/** @throws Error without numbers */
export function spreadOf(numbers: readonly number[]): Spread {
  if (numbers.length === 0 || numbers.some(Number.isNaN)) throw new Error('nothing was measured')
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const median = Number.isInteger(middle) ? (at(middle - 1) + at(middle)) / 2 : at(Math.floor(middle))
  return { median, min: at(0), max: at(sorted.length - 1) }
}
