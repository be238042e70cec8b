import { describe, expect, test } from 'vitest'
import { run } from './run.ts'

/** Always the same ones; `npm run soak` takes others, for as long as it is told. */
const SEEDS = [11, 12]
const STEPS = 1_000

describe.concurrent('whatever clients, origin, clock, disk and kills do', () => {
  test.each(SEEDS)(
    'no wrong byte, no outage told as absence or the reverse, no leak: seed %i',
    { timeout: 900_000 },
    async (seed) => {
      const report = await run({ seed, steps: STEPS })
      const { steps, seconds, busySeconds, lives, rests } = report
      const time = `${seconds} s (machine busy for ${busySeconds} s)`
      console.info(`chaos, seed ${seed}: ${steps} steps in ${time}, ${lives} lives, ${JSON.stringify(rests.at(-1))}`)
      if (report.violation !== undefined) console.error(report.violation)
      expect(report.violation).toBeUndefined()
      expect(report.steps).toBe(STEPS)
    },
  )
})
