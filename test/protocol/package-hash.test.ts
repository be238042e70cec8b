import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { assertSha256, parsePackageHash, parseSha256, zipHash } from '../../src/protocol/package-hash.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

const HEX = '61ad9739e7d6fca8fddef269cb2ba7285f0632f5f27660755662550e1f69e4bb'

describe('parseSha256', () => {
  it('gives lower case for any letter case (B27)', () => {
    expect(parseSha256(HEX.toUpperCase())).toBe(HEX)
    expect(zipHash(assertSha256(HEX))).toBe(`zh:${HEX}`)
  })

  it.each(['', HEX.slice(1), `${HEX}0`, `${HEX}\n`, ` ${HEX}`, `g${HEX.slice(1)}`])(
    'is undefined for anything else: %j',
    (text) => {
      expect(parseSha256(text)).toBeUndefined()
      expect(thrownBy(() => assertSha256(text)).code).toBe('INVALID_ADDRESS')
    },
  )
})

it('a digest throws errors of ours only, is its own spelling, and takes no longer for a megabyte', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-fA-F]{63,65}$/))
  fc.assert(
    fc.property(text, (input) => {
      const digest = outcome(() => assertSha256(input))
      if (isMirrorError(digest)) return digest.is('INVALID_ADDRESS')
      expect(digest).toBe(input.toLowerCase())
      expect([parseSha256(digest), parsePackageHash(zipHash(digest))]).toEqual([digest, `zh:${digest}`])
      return true
    }),
  )
  for (const long of ['a'.repeat(1e6), ' '.repeat(1e6)]) {
    expect(cpuMs(() => thrownBy(() => assertSha256(long)))).toBeLessThan(2000)
  }
})

describe('parsePackageHash', () => {
  it('takes zh in any letter case, h1 as it is, and no other scheme', () => {
    expect(parsePackageHash(`zh:${HEX.toUpperCase()}`)).toBe(`zh:${HEX}`)
    expect(parsePackageHash('h1:yZ6W9xVRg/J+CsYC5zefHGnaygOxVVCk34uidFslHV4=')).toBe(
      'h1:yZ6W9xVRg/J+CsYC5zefHGnaygOxVVCk34uidFslHV4=',
    )
    for (const text of ['', HEX, `sha256:${HEX}`, `h2:${HEX}`, 'h1:', 'h1:yZ6W', 'zh:', `ZH:${HEX}`])
      expect(parsePackageHash(text)).toBeUndefined()
  })

  it('is the identity on what it returns, and takes no longer for a megabyte', () => {
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^zh:[0-9a-fA-F]{64}$/),
      fc.stringMatching(/^h1:[a-zA-Z0-9+/]{43}=$/),
    )
    fc.assert(
      fc.property(text, (input) => {
        const hash = parsePackageHash(input)
        if (hash !== undefined) expect(parsePackageHash(hash)).toBe(hash)
      }),
    )
    expect(cpuMs(() => parsePackageHash(`zh:${'a'.repeat(1e6)}`))).toBeLessThan(2000)
    expect(cpuMs(() => parsePackageHash(`h1:${'a'.repeat(1e6)}`))).toBeLessThan(2000)
  })
})
