import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatHops, parseHops } from '../../src/protocol/hops.ts'
import { cpuMs } from './only-mirror-errors.ts'

test('hops survive the way through a header, nearest last', () => {
  expect(parseHops(formatHops(['a', 'b-1'], 'c'))).toEqual(['a', 'b-1', 'c'])
})

test('parsing is the inverse of printing, up to the 16 hops that are read', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9-]{1,64}$/)
  fc.assert(
    fc.property(fc.array(name, { maxLength: 20 }), name, (hops, last) => {
      expect(parseHops(formatHops(hops, last))).toEqual([...hops, last].slice(0, 16))
    }),
  )
})

test('no header means no hops', () => {
  expect(parseHops(undefined)).toEqual([])
  expect(parseHops('')).toEqual([])
})

test('whatever a stranger sends, there are at most 16 hops and all are names', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(fc.stringMatching(/^[A-Za-z0-9-]{1,70}$/)).map((a) => a.join(',')),
      ),
      (header) => {
        const hops = parseHops(header)
        expect(hops.length).toBeLessThanOrEqual(16)
        for (const hop of hops) expect(hop).toMatch(/^[A-Za-z0-9-]{1,64}$/)
      },
    ),
  )
})

test('a megabyte takes no longer', () => {
  for (const header of ['a'.repeat(1e6), ','.repeat(1e6), ' '.repeat(1e6), 'a, '.repeat(3e5)]) {
    expect(cpuMs(() => parseHops(header))).toBeLessThan(2000)
  }
})
