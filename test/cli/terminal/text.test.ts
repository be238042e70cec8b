import { describe, expect, test } from 'vitest'
import { formatAge, formatSeconds } from '../../../src/cli/terminal/age.ts'
import { formatFacts } from '../../../src/cli/terminal/facts.ts'
import { printable } from '../../../src/cli/terminal/printable.ts'
import { Table } from '../../../src/cli/terminal/table.ts'

test('what a terminal would obey is shown instead', () => {
  expect(printable('a\u001b[31mb\u009bc\r\u0007d\u202ee\nf\tg')).toBe(
    'a\ufffd[31mb\ufffdc\ufffd\ufffdd\ufffde\nf\ufffdg',
  )
  expect(printable('größer ✓ 日本')).toBe('größer ✓ 日本')
})

describe('a table', () => {
  const columns = [
    { title: 'NAME', cell: ([name]: [string, number]) => name },
    { title: 'N', align: 'right' as const, cell: ([, number]: [string, number]) => String(number) },
  ]

  test('has titles once, columns side by side, and no spaces at the end of a line', () => {
    const table = new Table(columns)
    expect(
      table.format([
        ['a', 5],
        ['bbbbbb', 500],
      ]),
    ).toBe('NAME      N\na         5\nbbbbbb  500\n')
    expect(table.format([['c', 1]])).toBe('c         1\n')
    expect(table.format([])).toBe('')
  })

  test('keeps a cell with line breaks in its line', () => {
    expect(new Table(columns).format([['a\nb', 1]])).toBe('NAME  N\na b   1\n')
  })
})

test('facts stand in two columns, several values below each other, and what is not known is left out', () => {
  const facts = formatFacts([
    ['a', 'one'],
    ['longer', ['x', 'y']],
    ['none', undefined],
    ['empty', []],
  ])
  expect(facts).toBe('a       one\nlonger  x\n        y\n')
})

test.each([
  [0, 'now'],
  [59_999, '59 s ago'],
  [60_000, '1 min ago'],
  [3_600_000, '1 h ago'],
  [2.5 * 86_400_000, '2 d ago'],
  [-90_000, 'in 1 min'],
])('%d ms ago is %s', (passed, text) => {
  const now = Date.parse('2026-11-30T10:00:00.000Z')
  expect(formatAge(new Date(now - passed).toISOString(), now)).toBe(text)
})

test.each([
  [0.2, '1 s'],
  [59, '59 s'],
  [61, '1 min 1 s'],
  [7500, '2 h 5 min'],
])('%d seconds are %s', (seconds, text) => {
  expect(formatSeconds(seconds)).toBe(text)
})
