import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findHostility } from '../../src/http/hostile-target.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

const piece = fc.oneof(
  fc.constantFrom('/', '.', '..', '%', '%2e', '%2E%2e', '%2f', '%00', '%5c', '\\', '?', '#', '%zz', '%ff', 'a', '+'),
  fc.string({ maxLength: 4, unit: 'binary' }),
)
const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`)

it('whatever the target, nothing is thrown, and what is let in decodes to plain segments', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), target), (text) => {
      const reason = findHostility(text)
      if (reason !== undefined) return
      const [path = ''] = text.split('?', 1)
      expect(path.startsWith('/')).toBe(true)
      for (const segment of path.split('/').map(decodeURIComponent)) {
        expect(segment).not.toMatch(/[\p{Cc}/\\]/u)
        expect(['.', '..']).not.toContain(segment)
      }
    }),
    { numRuns: 2_000 },
  )
})

it('a megabyte takes no longer', () => {
  for (const text of ['/', '%', '/..', '%2e', '?', 'a']) {
    expect(cpuMs(() => findHostility(`/${text.repeat(1e6 / text.length)}`))).toBeLessThan(2_000)
  }
})

it('the reason never repeats the target', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 8, unit: 'grapheme-ascii' }), (secret) => {
      const reason = findHostility(`/../${secret}`) ?? ''
      expect(reason).not.toBe('')
      expect(reason).not.toContain(secret)
    }),
  )
})

describe('is refused', () => {
  it.each([
    ['dot segments', '/providers/../../etc/passwd'],
    ['a single dot', '/providers/./x'],
    ['encoded dot segments', '/providers/%2e%2E/x'],
    ['half encoded ones', '/providers/.%2e/x'],
    ['an encoded slash', '/providers/a%2fb/x'],
    ['an encoded backslash', '/providers/a%5Cb'],
    ['a backslash', '/providers\\x'],
    ['an encoded NUL', '/providers/%00'],
    ['an encoded line feed', '/providers/a%0Ab'],
    ['an encoded C1 control', '/providers/%C2%85'],
    ['broken percent encoding', '/providers/%zz'],
    ['percent encoding that is no UTF-8', '/providers/%ff'],
    ['a percent sign at the end', '/providers/x%'],
    ['an absolute URL', 'https://mirror.example.com/providers/'],
    ['an asterisk', '*'],
    ['nothing', ''],
    ['overlong text', `/${'a'.repeat(2_048)}`],
  ])('%s', (_, text) => {
    expect(findHostility(text)).toBeTypeOf('string')
  })
})

describe('is let in', () => {
  it.each([
    '/',
    '/healthz',
    '/providers/registry.terraform.io/hashicorp/aws/index.json',
    '/providers/registry.terraform.io/hashicorp/aws/1.0.0+build.json',
    '/providers/registry.terraform.io/hashicorp/aws/1.0.0%2Bbuild.json',
    '/providers/xn--bcher-kva.example/b%C3%BCcher/aws/index.json',
    '/providers/registry.terraform.io/hashicorp/...aws/x',
    '/providers/registry.terraform.io//aws/index.json',
    '/v1/providers/hashicorp/aws/versions?q=../%00',
    `/${'a'.repeat(2_047)}`,
  ])('%s', (text) => {
    expect(findHostility(text)).toBeUndefined()
  })
})
