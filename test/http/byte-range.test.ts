import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ByteRange, parseByteRange } from '../../src/http/byte-range.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

const rangeLike = fc
  .tuple(
    fc.constantFrom('bytes=', 'Bytes=', 'bytes', 'lines=', 'bytes= ', ''),
    fc.array(fc.constantFrom('0', '1', '9', '-', ',', ' ', '\t', '5', '99999999999999999999', 'x'), { maxLength: 8 }),
  )
  .map(([unit, rest]) => unit + rest.join(''))

it('whatever the header, nothing is thrown, and a range lies within the body and is not empty', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), rangeLike), fc.nat({ max: 1_000 }), (header, size) => {
      const range = parseByteRange(header, size)
      if (range === undefined || range === 'unsatisfiable') return
      expect(Number.isSafeInteger(range.start) && Number.isSafeInteger(range.end)).toBe(true)
      expect(range.start).toBeGreaterThanOrEqual(0)
      expect(range.end).toBeGreaterThan(range.start)
      expect(range.end).toBeLessThanOrEqual(size)
    }),
    { numRuns: 2_000 },
  )
})

it('parsing is the inverse of printing, in all three forms that a range has', () => {
  fc.assert(
    fc.property(fc.nat({ max: 999 }), fc.nat({ max: 999 }), fc.nat({ max: 1_000 }), (a, b, more) => {
      const range: ByteRange = { start: Math.min(a, b), end: Math.max(a, b) + 1 }
      const size = range.end + more
      expect(parseByteRange(`bytes=${range.start}-${range.end - 1}`, size)).toEqual(range)
      expect(parseByteRange(`bytes=${range.start}-`, range.end)).toEqual(range)
      expect(parseByteRange(`bytes=-${range.end - range.start}`, range.end)).toEqual(range)
    }),
  )
})

it('a megabyte takes no longer', () => {
  for (const text of ['9'.repeat(1e6), '-'.repeat(1e6), ' '.repeat(1e6), '0-1,'.repeat(25e4)]) {
    expect(cpuMs(() => parseByteRange(`bytes=${text}`, 1_000))).toBeLessThan(2000)
  }
})

describe('the examples of RFC 9110, section 14.1.2, for a body of 10,000 bytes', () => {
  it.each([
    ['bytes=0-499', { start: 0, end: 500 }],
    ['bytes=500-999', { start: 500, end: 1_000 }],
    ['bytes=-500', { start: 9_500, end: 10_000 }],
    ['bytes=9500-', { start: 9_500, end: 10_000 }],
  ])('%s', (header, expected) => {
    expect(parseByteRange(header, 10_000)).toEqual(expected)
  })

  it.each(['bytes=0-0,-1', 'bytes= 0-999, 4500-5499, -1000', 'bytes=500-600,601-999'])(
    'several ranges are served as the whole: %s',
    (header) => {
      expect(parseByteRange(header, 10_000)).toBeUndefined()
    },
  )
})

describe('at the edges', () => {
  it.each([
    ['a last position behind the end is cut', 'bytes=9-99', { start: 9, end: 10 }],
    ['a suffix longer than the body is the body', 'bytes=-99', { start: 0, end: 10 }],
    ['the unit is read in any letter case', 'BYTES=1-2', { start: 1, end: 3 }],
    ['blanks around the range are allowed', 'bytes= 1-2 ', { start: 1, end: 3 }],
    ['a first position behind the end cannot be satisfied', 'bytes=10-', 'unsatisfiable'],
    ['nor can a suffix of nothing', 'bytes=-0', 'unsatisfiable'],
    ['a range that ends before it begins is no range', 'bytes=5-4', undefined],
    ['blanks inside a number make no number', 'bytes=1 2-30', undefined],
    ['no positions at all are no range', 'bytes=-', undefined],
    ['another unit is ignored', 'items=0-1', undefined],
    ['a number with a sign is no position', 'bytes=+1-2', undefined],
    ['an overlong header is ignored unread', `bytes=${'0'.repeat(200)}1-`, undefined],
    ['no header is the whole', undefined, undefined],
  ])('%s', (_, header, expected) => {
    expect(parseByteRange(header, 10)).toEqual(expected)
  })

  it('of an empty body nothing can be satisfied', () => {
    expect(parseByteRange('bytes=0-', 0)).toBe('unsatisfiable')
    expect(parseByteRange('bytes=-1', 0)).toBe('unsatisfiable')
  })
})
