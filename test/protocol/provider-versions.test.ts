import fc from 'fast-check'
import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { isMirrorError } from '../../src/errors.ts'
import { isJsonObject } from '../../src/protocol/json.ts'
import { parseProviderVersions } from '../../src/protocol/provider-versions.ts'
import { compareVersions } from '../../src/protocol/version.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'
import { describeVectors, readJsonVector, readVector } from './vectors.ts'

const source = {
  host: 'reg.example.test',
  upstreamUrl: 'https://reg.example.test/v1/acme/widget/versions?token=s3cret',
}

function parse(body: unknown) {
  return parseProviderVersions(body, source)
}

function spellings(versions: readonly string[]): string[] {
  return parse({ versions: versions.map((version) => ({ version })) }).versions.map((entry) => entry.spelling)
}

describe('parseProviderVersions', () => {
  it('keeps what clients need, in ascending order', () => {
    const list = parse({
      id: 'acme/widget',
      versions: [
        { version: '1.10.0', protocols: ['5.0'], platforms: [{ os: 'linux', arch: 'amd64' }] },
        { version: '1.9.0', protocols: ['4.0', '5.1'], platforms: [] },
      ],
      warnings: ['deprecated'],
    })
    expect(list).toEqual({
      versions: [
        { version: '1.9.0', spelling: '1.9.0', protocols: ['4.0', '5.1'], platforms: [] },
        { version: '1.10.0', spelling: '1.10.0', protocols: ['5.0'], platforms: [{ os: 'linux', arch: 'amd64' }] },
      ],
      warnings: ['deprecated'],
      problems: [],
    })
  })

  it('leaves out a version with v and says so once, the others stay (B07)', () => {
    const list = parse({ versions: [{ version: '2.5.2' }, { version: 'v2.5.3-alpha1' }] })
    expect(list.versions.map((entry) => entry.version)).toEqual(['2.5.2'])
    expect(list.problems).toHaveLength(1)
    expect(list.problems[0]).toContain('v2.5.3-alpha1')
  })

  it('never lets a bad entry hide a good one', () => {
    const list = parse({
      versions: [null, 1, 'x', [], {}, { version: null }, { version: '1.0.0' }, { version: 'latest' }],
    })
    expect(list.versions.map((entry) => entry.version)).toEqual(['1.0.0'])
    expect(list.problems).toHaveLength(7)
  })

  it('takes the canonical one of two spellings, else the first, and reports the other', () => {
    expect(spellings(['1.14', '1.14.0'])).toEqual(['1.14.0'])
    expect(spellings(['1.14.0', '1.14'])).toEqual(['1.14.0'])
    expect(spellings(['01.14', '1.14'])).toEqual(['01.14'])
    expect(parse({ versions: [{ version: '1.14' }, { version: '1.14.0' }] }).problems).toEqual([
      'left out "1.14": the same version as "1.14.0"',
    ])
    expect(parse({ versions: [{ version: '1.0.0' }, { version: '1.0.0' }] }).problems).toHaveLength(1)
  })

  it('keeps versions apart that differ in build metadata only', () => {
    expect(spellings(['0.2.1+2', '0.2.1', '0.2.1+1'])).toEqual(['0.2.1', '0.2.1+1', '0.2.1+2'])
  })

  it('drops platforms, protocols and warnings that are none', () => {
    const platforms = [
      { os: 'linux', arch: 'amd64' },
      { os: 'Linux', arch: 'amd64' },
      { os: 'linux' },
      null,
      'x',
      { os: 1, arch: 2 },
    ]
    const list = parse({ versions: [{ version: '1.0.0', protocols: ['5.0', 5, null], platforms }], warnings: ['w', 1] })
    expect(list.versions[0]).toMatchObject({ protocols: ['5.0'], platforms: [{ os: 'linux', arch: 'amd64' }] })
    expect(list.warnings).toEqual(['w'])
    expect(list.problems).toEqual([])
    const nulls = parse({ versions: [{ version: '1.0.0', protocols: null, platforms: null }], warnings: null })
    expect(nulls.versions[0]).toMatchObject({ protocols: [], platforms: [] })
  })

  it('lists at most 20 problems and counts the rest', () => {
    const { problems } = parse({ versions: Array.from({ length: 50 }, (_, n) => ({ version: `v${n}` })) })
    expect(problems).toHaveLength(21)
    expect(problems.at(-1)).toBe('and 30 more')
    expect(Math.max(...parse({ versions: [{ version: 'x'.repeat(1e6) }] }).problems.map((p) => p.length))).toBeLessThan(
      200,
    )
  })

  it('reads an empty list and null as no versions', () => {
    expect(parse({ versions: [] }).versions).toEqual([])
    expect(parse({ versions: null }).versions).toEqual([])
  })

  it.each([undefined, null, '', '<html>', 1, [], {}, { versions: {} }, { versions: '1.0.0' }, { Versions: [] }])(
    'calls a body that is no such document invalid, never an empty list: %j',
    (body) => {
      const error = thrownBy(() => parse(body))
      expect(error.code).toBe('UPSTREAM_INVALID')
      expect(error.fields).toMatchObject({
        host: source.host,
        upstreamUrl: 'https://reg.example.test/v1/acme/widget/versions',
      })
      expect(JSON.stringify([error.message, error.fields])).not.toContain('s3cret')
    },
  )

  it('throws errors of ours only, for any JSON, and each version once in order', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9v.+-]{1,7}$/))
    const entry = fc.oneof(
      fc.jsonValue(),
      fc.record({ version: text, protocols: fc.jsonValue(), platforms: fc.jsonValue() }, { requiredKeys: [] }),
    )
    const body = fc.oneof(fc.jsonValue(), fc.record({ versions: fc.array(entry), warnings: fc.jsonValue() }))
    fc.assert(
      fc.property(body, (json) => {
        const list = outcome(() => parse(json))
        if (isMirrorError(list)) return list.is('UPSTREAM_INVALID')
        const versions = list.versions.map((item) => item.version)
        expect(versions).toEqual([...new Set(versions)].sort(compareVersions))
        return true
      }),
      { numRuns: 1000 },
    )
  })

  it('reads back what it would print: every version once, as the origin spells it', () => {
    const identifier = fc.stringMatching(/^[a-z0-9]{1,3}$/)
    const spelling = fc
      .tuple(fc.array(fc.nat(3), { minLength: 1, maxLength: 3 }), fc.option(identifier), fc.option(identifier))
      .map(([core, pre, build]) => `${core.join('.')}${pre ? `-${pre}` : ''}${build ? `+${build}` : ''}`)
    const platform = fc.record({ os: fc.constantFrom('linux', 'darwin'), arch: fc.constantFrom('amd64', 'arm64') })
    const entry = fc.record({
      version: spelling,
      protocols: fc.array(fc.constantFrom('4.0', '5.0', '6')),
      platforms: fc.array(platform),
    })
    fc.assert(
      fc.property(fc.array(entry), fc.array(fc.string()), (versions, warnings) => {
        const list = parse({ versions, warnings })
        const canonical = new Set(versions.map((item) => parse({ versions: [item] }).versions[0]?.version))
        expect(new Set(list.versions.map((item) => item.version))).toEqual(canonical)
        const printed = list.versions.map(({ version: _, spelling, ...rest }) => ({ version: spelling, ...rest }))
        expect(parse({ versions: printed, warnings })).toEqual({ ...list, problems: [] })
      }),
    )
  })

  it('takes no longer for a megabyte', () => {
    const many = { versions: Array.from({ length: 45_000 }, (_, n) => ({ version: `${n % 7}.${n}` })) }
    expect(cpuMs(() => parse(many))).toBeLessThan(2000)
    expect(cpuMs(() => parse({ versions: Array.from({ length: 45_000 }, () => ({ version: '1.0' })) }))).toBeLessThan(
      2000,
    )
  })
})

describeVectors('real lists of versions', () => {
  it.each([
    ['responses/registry.terraform.io/aws_versions_2023.json.gz', 324, '0.1.0', '5.9.0'],
    ['responses/registry.terraform.io/random_versions_2023.json', 30, '0.1.0', '3.5.1'],
    ['responses/registry.opentofu.org/docs_versions.json', 2, '2.0.0', '2.0.1'],
    ['opentofu-registry/v1-derived/v1/providers/bpg/proxmox/versions', 126, '', '0.70.0'],
    ['opentofu-registry/v1-derived/v1/providers/cloudflare/cloudflare/versions', 125, '', '5.0.0-rc1'],
    ['opentofu-registry/v1-derived/v1/providers/gavinbunney/kubectl/versions', 29, '', '1.19.0'],
    ['opentofu-registry/v1-derived/v1/providers/hashicorp/nomad/versions', 34, '', '2.3.1'],
    ['opentofu-registry/v1-derived/v1/providers/hashicorp/random/versions', 34, '', '3.6.3'],
    ['opentofu-registry/v1-derived/v1/providers/marcofranssen/curl/versions', 15, '', '0.7.0'],
    ['opentofu-registry/v1-derived/v1/providers/ojford/wireguard/versions', 13, '', '0.3.1'],
    ['opentofu-registry/v1-derived/v1/providers/opentofu/dyn/versions', 4, '', '1.2.0'],
  ])('are read whole: %s', (path, count, first, last) => {
    const body = readJsonVector(path)
    const list = parse(body)
    expect(list.versions).toHaveLength(count)
    expect(list.problems).toEqual([])
    expect(list.versions.at(-1)?.version).toBe(last)
    if (first !== '') expect(list.versions[0]?.version).toBe(first)
    const spellings = list.versions.map((entry) => entry.spelling)
    expect(spellings).toEqual([...spellings].sort(semver.compareBuild))
    expect(list.versions.every((entry) => entry.protocols.length > 0 && entry.platforms.length > 0)).toBe(true)
  })

  it('keep protocols "4" and "4.0", a null for warnings, the warnings of opentofu/dyn and the build metadata of wireguard', () => {
    const aws = parse(readJsonVector('responses/registry.terraform.io/aws_versions_2023.json.gz'))
    expect(new Set(aws.versions.flatMap((entry) => entry.protocols))).toEqual(new Set(['4', '4.0', '5.0', '4.0,5.0']))
    expect(aws.warnings).toEqual([])
    const dyn = parse(readJsonVector('opentofu-registry/v1-derived/v1/providers/opentofu/dyn/versions'))
    expect(dyn.warnings).toHaveLength(2)
    const wireguard = parse(readJsonVector('opentofu-registry/v1-derived/v1/providers/ojford/wireguard/versions'))
    expect(wireguard.versions.map((entry) => entry.version)).toEqual(
      expect.arrayContaining(['0.2.1', '0.2.1+1', '0.2.1+2']),
    )
  })

  it('as recorded in 2021 are read whole', () => {
    const tape: unknown = parseYaml(readVector('responses/registry.terraform.io/vcr/fetches_provider_versions.yml'))
    const bodies = readRecordedBodies(tape, '/versions')
    expect(bodies).toHaveLength(1)
    for (const body of bodies) {
      const list = parse(body)
      expect(list.versions.length).toBe(isJsonObject(body) && Array.isArray(body.versions) ? body.versions.length : -1)
      expect(list.problems).toEqual([])
    }
  })

  it('with odd versions are read like the client reads them', () => {
    const read = (path: string) => parse(readJsonVector(path))
    expect(
      read('opentofu-registry/providers/o/outfoxx/jks-trust-store.json').versions.map((entry) => entry.version),
    ).toEqual(expect.arrayContaining(['0.1.0', '0.2.0']))
    expect(read('opentofu-registry/providers/t/taptap/alicloud.json').versions).toHaveLength(5)
    const okta = read('opentofu-registry/providers/c/chanzuckerberg/okta.json')
    expect(
      okta.versions.filter((entry) => entry.version.startsWith('3.7.4')).length + okta.problems.length,
    ).toBeGreaterThan(1)
  })
})

function readRecordedBodies(tape: unknown, ending: string): unknown[] {
  if (!isJsonObject(tape) || !Array.isArray(tape.http_interactions)) return []
  return tape.http_interactions.flatMap((exchange) => {
    if (!isJsonObject(exchange) || !isJsonObject(exchange.request) || !isJsonObject(exchange.response)) return []
    const { body } = exchange.response
    const wanted = String(exchange.request.uri).endsWith(ending) && isJsonObject(body)
    return wanted ? [JSON.parse(String(body.string))] : []
  })
}
