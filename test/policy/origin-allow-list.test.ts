import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createOriginAllowList } from '../../src/policy/origin-allow-list.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'

function allows(patterns: string[], host: string): boolean {
  return createOriginAllowList(patterns)(parseHostname(host))
}

describe('an origin is allowed', () => {
  it.each([
    ['the host itself', 'registry.acme.example', 'registry.acme.example', true],
    ['in any letter case, as it is one host', 'registry.acme.example', 'Registry.ACME.example', true],
    ['with the default port, as it is one host', 'registry.acme.example', 'registry.acme.example:443', true],
    ['on another port it is another host', 'registry.acme.example', 'registry.acme.example:8443', false],
    ['a port that is named', 'registry.acme.example:8443', 'registry.acme.example:8443', true],
    ['a host below it is another one', 'acme.example', 'registry.acme.example', false],
    ['a host that only ends like it is another one', 'acme.example', 'evil-acme.example', false],
    ['below a pattern', '*.acme.example', 'registry.acme.example', true],
    ['far below a pattern', '*.acme.example', 'a.b.acme.example', true],
    ['the domain of the pattern itself is not below it', '*.acme.example', 'acme.example', false],
    ['nor is a host that only ends like it', '*.acme.example', 'evilacme.example', false],
    ['nor one that only begins like it', '*.acme.example', 'registry.acme.example.evil.example', false],
    ['a pattern is for the default port', '*.acme.example', 'registry.acme.example:8443', false],
  ])('%s', (_, pattern, host, expected) => {
    expect(allows(['other.example', pattern], host)).toBe(expected)
  })

  it('no host at all by an empty list', () => {
    expect(allows([], 'registry.terraform.io')).toBe(false)
  })

  it('by no word that every object knows', () => {
    for (const word of ['constructor', 'tostring', 'valueof']) expect(allows(['acme.example'], word)).toBe(false)
  })
})

it('however many patterns there are, a host is allowed if and only if one of them is for it', () => {
  const label = fc.constantFrom('a', 'b', 'acme')
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join('.')}.example`)
  const pattern = fc.tuple(fc.constantFrom('', '*.'), name).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 5 }), name, (patterns, host) => {
      const fits = (each: string): boolean =>
        each.startsWith('*.') ? host !== each.slice(2) && `.${host}`.endsWith(each.slice(1)) : host === each
      expect(allows(patterns, host)).toBe(patterns.some(fits))
    }),
  )
})
