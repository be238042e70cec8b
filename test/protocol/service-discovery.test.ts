import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { parseHostname } from '../../src/protocol/hostname.ts'
import { isJsonObject } from '../../src/protocol/json.ts'
import { DiscoveryDocument, findService, parseDiscoveryDocument } from '../../src/protocol/service-discovery.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'
import { describeVectors, readJsonVector, readVector } from './vectors.ts'

const hostname = parseHostname('reg.example.test')
const url = new URL('https://reg.example.test/.well-known/terraform.json?token=s3cret')

function parseText(text: string, mediaType = 'application/json'): DiscoveryDocument {
  return parseDiscoveryDocument(Buffer.from(text), { hostname, url, mediaType })
}

function providers(value: unknown): string | undefined {
  return findService(parseText(JSON.stringify({ 'providers.v1': value })), 'providers.v1')?.href
}

describe('parseDiscoveryDocument', () => {
  it.each([
    ['/v1/providers/', 'https://reg.example.test/v1/providers/'],
    ['/v1/providers', 'https://reg.example.test/v1/providers/'],
    ['v1/providers/', 'https://reg.example.test/.well-known/v1/providers/'],
    ['../api/tf/', 'https://reg.example.test/api/tf/'],
    ['../api/tf', 'https://reg.example.test/api/tf/'],
    ['//third.example.test/p', 'https://third.example.test/p/'],
    ['https://third.example.test', 'https://third.example.test/'],
    ['https://third.example.test:8443/x', 'https://third.example.test:8443/x/'],
    ['http://third.example.test/x/', 'http://third.example.test/x/'],
    ['/v1/?a=b#c', 'https://reg.example.test/v1/'],
  ])('makes a base URL that ends in a slash of %s (B52, D4)', (value, expected) => {
    expect(providers(value)).toBe(expected)
  })

  it('resolves against the final URL, on another host after a redirect (B52)', () => {
    const final = new URL('https://other.example.test/registry/terraform.json')
    const body = Buffer.from('{"providers.v1":"../api/tf/","modules.v1":"m"}')
    const document = parseDiscoveryDocument(body, { hostname, url: final, mediaType: 'application/json' })
    expect(findService(document, 'providers.v1')?.href).toBe('https://other.example.test/api/tf/')
    expect(findService(document, 'modules.v1')?.href).toBe('https://other.example.test/registry/m/')
  })

  it.each([undefined, null, 1, true, {}, [], '', ' '])('takes %j for a service that is not offered', (value) => {
    expect(providers(value)).toBeUndefined()
  })

  it('does not take another version of the service for it', () => {
    expect(findService(parseText('{"providers.v2":"/v2/","modules.v1":"/m/"}'), 'providers.v1')).toBeUndefined()
  })

  it.each([
    'https://user:hunter2@x.test/',
    'https://user@x.test/',
    '//hunter2@x.test/',
    'ftp://x.test/',
    'file:///x',
    'https://[',
    'https://',
  ])('refuses %s, which is not the same as not offered, and remembers no credentials', (value) => {
    const document = parseText(JSON.stringify({ 'providers.v1': value, 'modules.v1': '/m/' }))
    const error = thrownBy(() => findService(document, 'providers.v1'))
    expect(error.code).toBe('UPSTREAM_INVALID')
    expect(JSON.stringify([document, error.message, error.fields])).not.toMatch(/hunter2|s3cret/)
    expect(findService(document, 'modules.v1')?.href).toBe('https://reg.example.test/m/')
  })

  it.each(['text/html', 'text/plain', '', 'application/json; charset=utf-8', 'application/vnd.api+json'])(
    'says that the host answered but is no registry, for media type %j (B04)',
    (mediaType) => {
      const error = thrownBy(() => parseText('{"providers.v1":"/v1/"}', mediaType))
      expect(error.code).toBe('UPSTREAM_INVALID')
      expect(error.message).toContain('reg.example.test answered, but is not a registry')
      expect(error.message).toContain('https://reg.example.test/.well-known/terraform.json')
      expect(error.message).toContain(mediaType || 'missing')
      expect(error.message).not.toContain('s3cret')
    },
  )

  it.each(['', '<html></html>', 'null', '[]', '"x"', '1', '{', '{} x', '{}{}', '\ufeff{}', "{'a':1}", '{"a":1,}'])(
    'demands one JSON object and nothing else: %j',
    (text) => {
      expect(thrownBy(() => parseText(text)).code).toBe('UPSTREAM_INVALID')
    },
  )

  it('ignores services that it does not know, whatever they are', () => {
    const document = parseText(
      '{"login.v1":{"client":"x"},"__proto__":{"providers.v1":"/evil/"},"x":[1],"providers.v1":"/v1/"}',
    )
    expect(findService(document, 'providers.v1')?.href).toBe('https://reg.example.test/v1/')
    expect(findService(parseText('{"__proto__":{"providers.v1":"/evil/"}}'), 'providers.v1')).toBeUndefined()
  })

  it('survives being remembered as JSON', () => {
    const document = parseText('{"providers.v1":"/v1/","modules.v1":"ftp://x/","state.v2":"/s"}')
    const remembered = DiscoveryDocument.parse(JSON.parse(JSON.stringify(document)))
    expect(remembered).toEqual(document)
    expect(findService(remembered, 'providers.v1')?.href).toBe('https://reg.example.test/v1/')
    expect(thrownBy(() => findService(remembered, 'modules.v1')).code).toBe('UPSTREAM_INVALID')
  })

  it('reads what it has read once more, and finds the same services', () => {
    const reference = fc.oneof(fc.webUrl(), fc.webPath(), fc.constantFrom('../x', 'y/', 'ftp://x/', '', '//h.test'))
    const name = fc.constantFrom('providers.v1', 'modules.v1', 'login.v1')
    fc.assert(
      fc.property(fc.dictionary(name, reference), (services) => {
        const document = parseText(JSON.stringify(services))
        expect(parseText(JSON.stringify(document.services)).services).toEqual(document.services)
      }),
    )
  })

  it('reads a configured service by the same rules', () => {
    const configured = {
      url: 'https://reg.example.test/.well-known/terraform.json',
      services: { 'providers.v1': '/p' },
    }
    expect(findService(configured, 'providers.v1')?.href).toBe('https://reg.example.test/p/')
  })

  it('throws errors of ours only, for any bytes and any value', () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.webUrl({ withQueryParameters: true, withFragments: true }),
      fc.string({ unit: 'binary' }),
    )
    const bytes = fc.oneof(
      fc.uint8Array().map((array) => Buffer.from(array)),
      fc.record({ 'providers.v1': value, 'modules.v1': value }).map((json) => Buffer.from(JSON.stringify(json))),
    )
    fc.assert(
      fc.property(bytes, (body) => {
        const service = outcome(() =>
          findService(parseDiscoveryDocument(body, { hostname, url, mediaType: 'application/json' }), 'providers.v1'),
        )
        if (service === undefined) return true
        if (isMirrorError(service)) return service.is('UPSTREAM_INVALID')
        const { protocol, username, password, search, hash, pathname } = service
        expect([username, password, search, hash]).toEqual(['', '', '', ''])
        return (protocol === 'https:' || protocol === 'http:') && pathname.endsWith('/')
      }),
      { numRuns: 1000 },
    )
  })

  it('takes no longer for a megabyte', () => {
    const texts = ['['.repeat(1e6), `{"providers.v1":"${'../'.repeat(3e5)}"}`, `{"providers.v1":"${' '.repeat(1e6)}x"}`]
    for (const text of texts) {
      expect(cpuMs(() => outcome(() => findService(parseText(text), 'providers.v1')))).toBeLessThan(2000)
    }
  })
})

describeVectors('real discovery documents', () => {
  it('give their services', () => {
    const entries = readJsonVector('responses/discovery.json')
    if (!Array.isArray(entries)) throw new Error('not a list')
    const found = entries.filter(isJsonObject).flatMap(({ host, body }) => {
      if (!isJsonObject(body)) return []
      const document = parseText(JSON.stringify(body))
      return [[host, findService(document, 'providers.v1')?.href, findService(document, 'modules.v1')?.href]]
    })
    const here = 'https://reg.example.test'
    expect(found).toEqual([
      ['registry.terraform.io', `${here}/v1/providers/`, `${here}/v1/modules/`],
      ['registry.opentofu.org', `${here}/v1/providers/`, `${here}/v1/modules/`],
      ['app.terraform.io', `${here}/api/registry/v1/providers/`, `${here}/api/registry/v1/modules/`],
      ['app.terraform.io', undefined, `${here}/api/registry/v1/modules/`],
      ['gitlab.com (any GitLab)', undefined, `${here}/api/v4/packages/terraform/modules/v1/`],
      ['terralist', `${here}/v1/providers/`, `${here}/v1/modules/`],
      ['opendepot', `${here}/opendepot/providers/v1/`, `${here}/opendepot/modules/v1/`],
      ['terrapod', `${here}/api/terrapod/v1/registry/providers/`, `${here}/api/terrapod/v1/registry/modules/`],
      ['t0tt1.github.io', 'https://t0tt1.github.io/terraform-registry/providers/', undefined],
      ['azizsoule.github.io', 'https://azizsoule.github.io/terraform-provider-hostinger/providers/', undefined],
      ['crainte.github.io', 'https://crainte.github.io/', undefined],
      ['registry.demothinkupc.com', `${here}/v1/providers/`, undefined],
      ['terrakube (2021 design)', undefined, 'https://azbserver.com/terraform/modules/v1/'],
      ['registry proxy seen in a client test', undefined, 'https://api.staging.example.test/v1/modules/'],
    ])
  })

  it.each(['azizsoule', 'experiment-4', 'testuser2697'])('of static registries are read: %s', (name) => {
    const document = parseText(readVector(`static-registries/${name}/dot-well-known/terraform.json`))
    expect(findService(document, 'providers.v1')?.pathname).toMatch(/\/providers\/$/)
  })
})
