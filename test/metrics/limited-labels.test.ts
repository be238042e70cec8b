import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LimitedLabels } from '../../src/metrics/limited-labels.ts'

function create(max: number, idleMs = 100) {
  const clock = { ms: 0 }
  const dropped: string[] = []
  const onDrop = (value: string): void => void dropped.push(value)
  return { clock, dropped, labels: new LimitedLabels({ max, idleMs, onDrop, now: () => clock.ms }) }
}

it('the first values keep their names, and those for which there is no place share one', () => {
  const { labels } = create(2)
  expect(['a', 'b', 'c', 'a', 'b'].map((value) => labels.of(value))).toEqual(['a', 'b', 'other', 'a', 'b'])
})

it('a value that was not used for long makes room for a new one, the one used longest ago first', () => {
  const { labels, clock, dropped } = create(2)
  labels.of('a')
  labels.of('b')
  clock.ms = 99
  labels.of('a')
  expect(labels.of('c')).toBe('other')
  clock.ms = 100
  expect(labels.of('c')).toBe('c')
  expect(dropped).toEqual(['b'])
  expect(labels.of('b')).toBe('other')
})

it('there are never more values than places, and what is dropped is not used any more', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(80))), (steps) => {
      const { labels, clock, dropped } = create(5)
      const live = new Set<string>()
      for (const [value, ms] of steps) {
        clock.ms += ms
        const label = labels.of(`v${value}`)
        for (const gone of dropped.splice(0)) live.delete(gone)
        if (label !== 'other') live.add(label)
        expect(live.size).toBeLessThanOrEqual(5)
      }
    }),
  )
})
