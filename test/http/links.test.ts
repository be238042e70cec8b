import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { archiveLink, NETWORK_MIRROR_BASE } from '../../src/http/links.ts'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import { parseProviderAddress } from '../../src/protocol/provider-address.ts'
import { assertVersion, parseVersion } from '../../src/protocol/version.ts'

const letters = fc.constantFrom(...'abcdefgz0189'.split(''))
const word = fc.string({ unit: letters, minLength: 1, maxLength: 8 })
const type = fc.oneof(
  word,
  fc.tuple(word, word).map((words) => words.join('-')),
  fc.constantFrom('bücher', '日本', 'my_type'),
)
const version = fc
  .tuple(fc.nat(99), fc.nat(99), fc.nat(99), fc.constantFrom('', '-beta.1', '+build.5', '-rc.1+a.b', '-x-y'))
  .map(([major, minor, patch, rest]) => assertVersion(`${major}.${minor}.${patch}${rest}`))
const platform = fc.tuple(word, word).map(([os, arch]) => parsePlatform(`${os}_${arch}`))

describe('the link to an archive', () => {
  it('has only unreserved characters, percent encoding and slashes (field-reports B53)', () => {
    fc.assert(
      fc.property(type, version, platform, (each, number, where) => {
        const address = parseProviderAddress({ hostname: 'registry.example.test', namespace: 'acme', type: each })
        expect(archiveLink(address, number, where)).toMatch(/^(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+$/)
      }),
    )
  })

  it('leads, from wherever the document is served, to a path beside it that names version and platform', () => {
    fc.assert(
      fc.property(type, version, platform, fc.constantFrom('', '/behind/a/prefix'), (each, number, where, prefix) => {
        const address = parseProviderAddress({ hostname: 'registry.example.test', namespace: 'acme', type: each })
        const folder = `https://user:pw@mirror.example${prefix}/providers/registry.example.test/acme/${encodeURIComponent(each)}/`
        for (const spelling of [number, encodeURIComponent(number)]) {
          const resolved = new URL(archiveLink(address, number, where), `${folder}${spelling}.json`)
          expect(resolved.href.startsWith(folder)).toBe(true)
          const [inPath = '', inPlatform, name = '', ...rest] = resolved.href.slice(folder.length).split('/')
          expect(parseVersion(decodeURIComponent(inPath))).toBe(number)
          expect(inPlatform).toBe(formatPlatform(where))
          expect(decodeURIComponent(name)).toMatch(/^terraform-provider-.*\.zip$/)
          expect(rest).toEqual([])
        }
      }),
    )
  })

  it('is what people expect to see', () => {
    const address = parseProviderAddress({ hostname: 'registry.example.test', namespace: 'acme', type: 'widget' })
    expect(archiveLink(address, assertVersion('1.0.0+b'), parsePlatform('linux_amd64'))).toBe(
      '1.0.0%2Bb/linux_amd64/terraform-provider-widget_1.0.0%2Bb_linux_amd64.zip',
    )
  })
})

it('the base path ends with the slash that clients need (client-contract A2)', () => {
  expect(NETWORK_MIRROR_BASE).toMatch(/^\/.*\/$/)
})
