import { expect, test } from 'vitest'
import { Rate } from '../../../src/cli/job/rate.ts'

test('a rate is that of the last ten seconds, and falls to nothing when nothing comes', () => {
  const rate = new Rate()
  rate.add(0, 0)
  expect(rate.perSecond(100)).toBeUndefined()
  for (let second = 1; second <= 20; second++) rate.add(1_000_000 * second, 1000 * second)
  expect(rate.perSecond(20_000)).toBe(1_000_000)
  // Half of the window was silent.
  expect(rate.perSecond(25_000)).toBeCloseTo(500_000, -5)
  expect(rate.perSecond(60_000)).toBeLessThan(30_000)
})

test('a burst before the window does not count', () => {
  const rate = new Rate()
  rate.add(0, 0)
  rate.add(900_000_000, 1000)
  for (let second = 2; second <= 30; second++) rate.add(900_000_000 + 1000 * second, 1000 * second)
  expect(rate.perSecond(30_000)).toBe(1000)
})

test('fewer bytes than before, as after a restart, begin anew', () => {
  const rate = new Rate()
  rate.add(0, 0)
  rate.add(5_000_000, 1000)
  rate.add(1000, 2000)
  rate.add(2000, 3000)
  expect(rate.perSecond(3000)).toBe(1000)
})
