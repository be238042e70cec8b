import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  archiveLink,
  discoveryLinks,
  downloadLinks,
  NETWORK_MIRROR_BASE,
  PROVIDER_REGISTRY_BASE,
} from '../../src/http/links.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
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

describe('the links of a download document', () => {
  const digest = 'c0ffee'.repeat(10).padEnd(64, '0')

  it('lead, from wherever the document is served, to paths of its own version, of plain characters', () => {
    const prefixes = fc.constantFrom('', '/behind/a/prefix', '/t/token~x')
    fc.assert(
      fc.property(type, version, platform, prefixes, (each, number, where, prefix) => {
        const address = parseProviderAddress({ hostname: 'registry.example.test', namespace: 'acme', type: each })
        const base = `https://user:pw@mirror.example${prefix}/v1/providers/registry.example.test/acme/${encodeURIComponent(each)}/`
        const links = downloadLinks({ address, version: number, platform: where }, { sums: digest, signature: digest })
        for (const spelling of [number, encodeURIComponent(number)]) {
          const folder = `${base}${spelling}/`
          for (const [name, link] of Object.entries(links)) {
            expect(link).toMatch(/^\.\.\/\.\.\/(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+$/)
            const { href } = new URL(link, `${folder}download/${where.os}/${where.arch}`)
            const kind = name === 'archive' ? `archives/${formatPlatform(where)}/` : `checksums/${digest}/`
            expect(href.startsWith(`${folder}${kind}terraform-provider-`)).toBe(true)
          }
        }
      }),
    )
  })

  it('lead to nothing where there is no file', () => {
    const address = parseProviderAddress({ hostname: 'registry.example.test', namespace: 'acme', type: 'widget' })
    const id = { address, version: assertVersion('1.0.0'), platform: parsePlatform('linux_amd64') }
    expect(downloadLinks(id, { sums: digest })).toEqual({
      archive: '../../archives/linux_amd64/terraform-provider-widget_1.0.0_linux_amd64.zip',
      sums: `../../checksums/${digest}/terraform-provider-widget_1.0.0_SHA256SUMS`,
      signature: '../../checksums/none/terraform-provider-widget_1.0.0_SHA256SUMS.sig',
    })
  })
})

it('the services of our own host are those of an origin, relative to the discovery document', () => {
  const { providers, modules } = discoveryLinks(parseHostname('registry.example.test:8443'))
  const discovery = 'https://mirror.example/behind/.well-known/terraform.json'
  expect(new URL(providers, discovery).pathname).toBe('/behind/v1/providers/registry.example.test%3A8443/')
  expect(new URL(modules, discovery).pathname).toBe('/behind/v1/modules/registry.example.test%3A8443/')
})

it('the base paths end with the slash that clients need (client-contract A2, C1)', () => {
  expect(PROVIDER_REGISTRY_BASE).toMatch(/^\/.*\/$/)
  expect(NETWORK_MIRROR_BASE).toMatch(/^\/.*\/$/)
})
