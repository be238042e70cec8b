import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseSize, parseTime } from '../../src/config/units.ts'

test('GB are powers of 1000 and GiB are powers of 1024', () => {
  expect(parseSize('20GB')).toBe(20_000_000_000)
  expect(parseSize('2GiB')).toBe(2_147_483_648)
  expect(parseSize('1.5 kB')).toBe(1500)
  expect(parseSize('0B')).toBe(0)
})

test('times have milliseconds to days', () => {
  expect(['250ms', '1.5s', '5m', '24h', '7d'].map(parseTime)).toEqual([250, 1500, 300_000, 86_400_000, 604_800_000])
})

test('a number without a unit, another case or a sign is refused, not guessed', () => {
  for (const text of ['5', '', '1e3', '5k', '20gb', '1KB', '-1GB', ' 1GB', '1GB ', '1,5GB', 'GB', '9999999TB', '5iB']) {
    expect(parseSize(text), text).toBeUndefined()
  }
  for (const text of ['5', '', '1M', '5 min', '-1s', '1h30m', 's', '99999999999999d']) {
    expect(parseTime(text), text).toBeUndefined()
  }
})

test('any text gives a safe whole number or nothing', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.stringMatching(/^\d{1,20}(\.\d{1,5})? ?[kMGTi]{0,2}B?[smhd]{0,2}$/)),
      (text) => {
        for (const value of [parseSize(text), parseTime(text)]) {
          expect(value === undefined || (Number.isSafeInteger(value) && value >= 0)).toBe(true)
        }
      },
    ),
  )
})
