import { describe, expect, it } from 'vitest'
import { parseJsonAnswer } from '../../src/upstream/registry/origin-answer.ts'
import { cpuMs, outcome, thrownBy } from '../protocol/only-mirror-errors.ts'

const url = new URL('https://registry.acme.example/v1/providers/acme/widget/versions?token=secret')

function parse(text: string) {
  return parseJsonAnswer({
    ...{ url, status: 200, mediaType: 'application/json', terraformGet: undefined },
    body: Buffer.from(text),
  })
}

describe('the JSON of a registry', () => {
  it.each([
    ['lists', '['.repeat(101) + ']'.repeat(101)],
    ['objects', '{"a":'.repeat(101) + 1 + '}'.repeat(101)],
    ['both, behind much else', `{"ok": [1, {}, []], "x": ${'[{"y":'.repeat(60_000)}0${'}]'.repeat(60_000)}}`],
    ['never closed', '['.repeat(1_000_000)],
  ])('that nests deeper than anything could write again (%s) is no answer', (_, text) => {
    expect(thrownBy(() => parse(text))).toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: expect.stringContaining('JSON that nests deeper than 100 levels (application/json)'),
      fields: { host: url.host, upstreamUrl: expect.not.stringContaining('secret') },
    })
  })

  it.each([
    ['a hundred levels', '['.repeat(100) + ']'.repeat(100)],
    ['many beside each other', `[${'[{}],'.repeat(1_000)}0]`],
    ['brackets in a string', JSON.stringify({ warnings: ['['.repeat(1_000), '{'.repeat(1_000)] })],
    ['brackets in a key', JSON.stringify({ [`${'['.repeat(1_000)}`]: 1 })],
    ['brackets behind a quote in a string', JSON.stringify([`"${'['.repeat(1_000)}`, `\\"${'{'.repeat(1_000)}`])],
    ['a string that ends in a backslash, and a list', JSON.stringify(['\\', ['\\\\'], '[[['])],
  ])('is read as it is: %s', (_, text) => {
    expect(parse(text)).toEqual(JSON.parse(text))
  })

  it('no closing bracket in a string hides how deep it is', () => {
    expect(thrownBy(() => parse('["]",'.repeat(101) + 0 + ']'.repeat(101)))).toMatchObject({
      message: expect.stringContaining('deeper than 100'),
    })
  })

  it.each([
    ['quotes that are escaped', '"\\"'.repeat(333_333)],
    ['one string of escapes without an end', `"${'\\"'.repeat(500_000)}`],
    ['strings without an end', `${'"\\" '.repeat(250_000)}"`],
    ['brackets in a string', JSON.stringify(['['.repeat(1_000_000)])],
    ['brackets in a string without an end', `"${'['.repeat(1_000_000)}`],
    ['many strings of brackets', JSON.stringify(Array.from({ length: 200_000 }, () => '[['))],
  ])('is looked through in linear time, a megabyte of %s too', (_, text) => {
    expect(cpuMs(() => outcome(() => parse(text)))).toBeLessThan(1_000)
  })
})
