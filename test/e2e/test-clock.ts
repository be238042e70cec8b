/** A clock for a mirror that a test moves: it runs with the real time, plus all that it was moved by. */
export class TestClock {
  #aheadMs = 0

  /** Milliseconds since 1970; bound, so that it can be handed on. */
  readonly now = (): number => Date.now() + this.#aheadMs

  /** Moves the clock forward, back if negative. */
  advance(ms: number): void {
    this.#aheadMs += ms
  }
}
