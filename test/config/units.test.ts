import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseSize, parseTime } from '../../src/config/units.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

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

test('parsing is the inverse of printing a whole number with any unit', () => {
  const sizes = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, kiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }
  const times = { ms: 1, s: 1e3, m: 60_000, h: 3_600_000, d: 86_400_000 }
  fc.assert(
    fc.property(fc.nat(8_000), fc.constantFrom('', ' '), (number, blank) => {
      for (const [unit, bytes] of Object.entries(sizes)) {
        expect(parseSize(`${number}${blank}${unit}`)).toBe(number * bytes)
      }
      for (const [unit, ms] of Object.entries(times)) expect(parseTime(`${number}${blank}${unit}`)).toBe(number * ms)
    }),
  )
})

test('a megabyte takes no longer', () => {
  for (const text of ['1'.repeat(1e6), `1.${'1'.repeat(1e6)}x`, `1${' '.repeat(1e6)}`, '1.'.repeat(5e5)]) {
    expect(cpuMs(() => [parseSize(text), parseTime(text)])).toBeLessThan(2000)
  }
})
