import { expect, test } from 'vitest'
import { ProgressLines } from '../../../src/cli/job/progress-lines.ts'
import { badItem, job } from '../samples.ts'

/** Shows a job for so many seconds, with ten states a second. */
function show(seconds: number): { lines: string[]; display: ProgressLines } {
  let now = 0
  const lines: string[] = []
  const display = new ProgressLines(
    () => now,
    (line) => lines.push(line),
  )
  const totalBytes = 1_000_000 * seconds
  for (now = 0; now <= 1000 * seconds; now += 100) {
    display.update(job({ progress: { done: Math.floor(now / 1000), total: seconds, bytes: 1000 * now, totalBytes } }))
  }
  return { lines, display }
}

test('there is not more than one line a second, and at least one in ten', () => {
  expect(show(5).lines).toHaveLength(5)
  const { lines } = show(3600)
  expect(lines.length).toBeGreaterThanOrEqual(360)
  expect(lines.length).toBeLessThan(400)
})

test('a line tells items, bytes, rate and the time that is left', () => {
  const { lines } = show(20)
  expect(lines[4]).toBe('warm: 5 of 20 items, 5 MB of 20 MB, 1 MB/s, 15 s left')
})

test('what is not well or was mended is told at once, once, with its reason', () => {
  const { lines, display } = show(0)
  display.item(badItem())
  display.item(badItem())
  display.item(badItem({ item: 'x', outcome: null }))
  display.item(badItem({ item: 'x', outcome: 'held' }))
  const { reason: _, ...well } = badItem({ item: 'y', outcome: 'done' })
  display.item(well)
  display.item({ item: 'z', outcome: 'done', bytes: 0, reason: 'it was damaged, and was fetched again' })
  expect(lines).toEqual([
    'registry.terraform.io/acme/widget 1.0.0 linux_amd64: refused: no listed key made the signature (SIGNATURE_INVALID)',
    'z: fetched: it was damaged, and was fetched again',
  ])
})

test('a job that has not begun waits', () => {
  const lines: string[] = []
  let now = 0
  const display = new ProgressLines(
    () => now,
    (line) => lines.push(line),
  )
  now = 1000
  display.update(job({ state: 'queued' }))
  expect(lines).toEqual(['warm: waits until other jobs are done'])
})

test('while nothing happens, a line in ten seconds is enough', () => {
  const lines: string[] = []
  let now = 0
  const display = new ProgressLines(
    () => now,
    (line) => lines.push(line),
  )
  for (now = 0; now <= 35_000; now += 100) display.update(job())
  expect(lines).toEqual(Array.from({ length: 4 }, () => 'warm: 0 of 2 items, 0 B of 2 MB'))
})
