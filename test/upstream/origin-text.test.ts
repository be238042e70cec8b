import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findOriginText } from '../../src/upstream/origin-text.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

function fromJson(document: unknown): string | undefined {
  return findOriginText(Buffer.from(JSON.stringify(document)), 'json')
}

describe('what an origin says in an error', () => {
  it.each([
    [{ errors: ['Not Found', 7, 'no key'] }, 'Not Found; no key'],
    [{ message: 'a\n\tb\u0000c' }, 'a b c'],
    [{ error: 'see HTTPS://user:pw@x.example/a?token=1#f now' }, 'see https://x.example/a now'],
    [
      { message: 'git+https://u:p@x.example/?q and https://y.example/?q' },
      'git+https://x.example/ and https://y.example/',
    ],
    [{ message: ' ' }, undefined],
    [{ detail: 'x' }, undefined],
    [null, undefined],
  ])('%j is one line without secrets: %j', (document, text) => {
    expect(fromJson(document)).toBe(text)
  })

  it('throws nothing, whatever the bytes, and is short', () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      fc.jsonValue().map((json) => Buffer.from(JSON.stringify(json))),
      fc.oneof(fc.string(), fc.webUrl()).map((message) => Buffer.from(JSON.stringify({ message }))),
    )
    fc.assert(
      fc.property(bytes, fc.constantFrom('json' as const, 'text' as const), (body, format) => {
        const text = findOriginText(Buffer.from(body), format)
        expect(text === undefined || (text.length > 0 && text.length <= 200)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it.each(['a', 'a:', 'a://', 'a://b ', ' ', '\u0000', '://', 'https://'])(
    'takes no longer for a megabyte of %j',
    (unit) => {
      const text = unit.repeat(1e6 / unit.length)
      expect(cpuMs(() => fromJson({ message: text }))).toBeLessThan(2_000)
      expect(cpuMs(() => findOriginText(Buffer.from(text), 'text'))).toBeLessThan(2_000)
    },
  )
})
