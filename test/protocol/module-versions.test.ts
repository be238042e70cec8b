import { readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseModuleVersion, parseModuleVersions } from '../../src/protocol/module-versions.ts'
import { outcome, thrownBy } from './only-mirror-errors.ts'
import { describeVectors, readJsonVector } from './vectors.ts'

const SOURCE = { host: 'reg.test', upstreamUrl: 'https://reg.test/v1/modules/a/b/c/versions?x=secret' }

function list(...spellings: unknown[]) {
  return parseModuleVersions({ modules: [{ versions: spellings.map((version) => ({ version })) }] }, SOURCE)
}

describe('parseModuleVersions', () => {
  it('lists canonical versions, each with the spelling that the origin must be asked for (B09, B10)', () => {
    expect(list('v0.0.5', '20.02.10', '1.1', '2.0.0-rc.1').versions).toEqual([
      { version: '0.0.5', spelling: 'v0.0.5' },
      { version: '1.1.0', spelling: '1.1' },
      { version: '2.0.0-rc.1', spelling: '2.0.0-rc.1' },
      { version: '20.2.10', spelling: '20.02.10' },
    ])
  })

  it.each([[['1.0', 'v1.0.0', '1.0.0']], [['1.0.0', 'v1.0.0', '1.0']], [['v1.0.0', '1.0.0', '1']]])(
    'of several spellings of one version the exact one wins, the others are reported: %j',
    (spellings) => {
      const { versions, problems } = list(...spellings)
      expect(versions).toEqual([{ version: '1.0.0', spelling: '1.0.0' }])
      expect(problems).toHaveLength(2)
    },
  )

  it('prefers the spelling with a v to one that is further off', () => {
    expect(list('1.0', 'v1.0.0').versions).toEqual([{ version: '1.0.0', spelling: 'v1.0.0' }])
  })

  it('leaves out what cannot be asked back, with a reason, and keeps the rest', () => {
    const { versions, problems } = list('1.0.0', 'latest', 7, 'vv1.0.0', '')
    expect(versions).toHaveLength(1)
    expect(problems).toHaveLength(4)
  })

  it('reads the first module only', () => {
    const body = { modules: [{ versions: [{ version: '1.0.0' }] }, { versions: [{ version: '2.0.0' }] }] }
    expect(parseModuleVersions(body, SOURCE).versions).toHaveLength(1)
  })

  it.each([null, {}, { modules: [] }, { modules: [null] }, { modules: [{ versions: {} }] }, { versions: [] }])(
    'takes %j for no list at all, and tells no secret',
    (body) => {
      const error = thrownBy(() => parseModuleVersions(body, SOURCE))
      expect(error.code).toBe('UPSTREAM_INVALID')
      expect(error.message).not.toContain('secret')
    },
  )

  it('throws nothing but our own errors, and every listed version parses back to itself', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => void outcome(() => parseModuleVersions(body, SOURCE))),
      { numRuns: 500 },
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.stringMatching(/^v?\d\.\d(\.\d)?(-rc)?$/))), (spellings) => {
        const { versions } = list(...spellings)
        expect(new Set(versions.map(({ version }) => version)).size).toBe(versions.length)
        for (const { version, spelling } of versions) {
          expect(parseModuleVersion(version)).toBe(version)
          expect(spellings).toContain(spelling)
        }
      }),
    )
  })
})

describeVectors('every module file of the registry', () => {
  const root = new URL('../../../shared/vectors/opentofu-registry/modules/', import.meta.url)

  it('lists, and nothing is lost but what is reported', () => {
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.json(\.gz)?$/.test(name))
    expect(files).toHaveLength(24)
    let total = 0
    for (const file of files) {
      const { versions } = readJsonVector(`opentofu-registry/modules/${file}`) as { versions: { version: string }[] }
      const result = parseModuleVersions({ modules: [{ versions }] }, SOURCE)
      const problems = result.problems.reduce((sum, text) => sum + Number(/^and (\d+) more/.exec(text)?.[1] ?? 1), 0)
      expect(result.versions.length + problems, file).toBe(versions.length)
      total += result.versions.length
    }
    console.info(`module files: ${files.length}, versions listed: ${total}`)
  })
})
