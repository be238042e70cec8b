import type { Chaos } from './chaos.ts'

/** One kind of step. */
export interface Step {
  /** How often it is taken, relative to the others. */
  readonly weight: number
  /** Taken in stormy stretches only. */
  readonly storm?: true
  /** Does it; choices come from the run's random numbers only, never from answers. */
  readonly run: (chaos: Chaos) => Promise<void>
}
