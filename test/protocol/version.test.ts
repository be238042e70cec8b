import fc from 'fast-check'
import semver from 'semver'
import { describe, expect, it } from 'vitest'
import { isMirrorError } from '../../src/errors.ts'
import { assertVersion, compareVersions, parseVersion, sortByVersion } from '../../src/protocol/version.ts'
import { cpuMs, outcome, thrownBy } from './only-mirror-errors.ts'

const identifier = fc.oneof(fc.nat({ max: 300 }).map(String), fc.stringMatching(/^[a-z-][0-9a-zA-Z-]{0,3}$/))
const version = fc
  .record({
    core: fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 }), fc.nat({ max: 20 })),
    pre: fc.array(identifier, { maxLength: 3 }),
    build: fc.array(identifier, { maxLength: 2 }),
  })
  .map(({ core, pre, build }) => {
    const suffix = `${pre.length > 0 ? `-${pre.join('.')}` : ''}${build.length > 0 ? `+${build.join('.')}` : ''}`
    return assertVersion(core.join('.') + suffix)
  })

describe('parseVersion', () => {
  it.each([
    ['1.2.3', '1.2.3'],
    ['1.14', '1.14.0'],
    ['1', '1.0.0'],
    ['0', '0.0.0'],
    ['01.2.3', '1.2.3'],
    ['1.00.0', '1.0.0'],
    ['4.57.0-beta.1', '4.57.0-beta.1'],
    ['1.0.0-01', '1.0.0-01'],
    ['1.1.0+b1', '1.1.0+b1'],
    ['0.6.3-1+4', '0.6.3-1+4'],
    ['1.0.0--', '1.0.0--'],
    ['1.0.20230101123456', '1.0.20230101123456'],
    ['12345678901234567890.0.0', '12345678901234567890.0.0'],
  ])('reads %s as the clients do (A18)', (text, expected) => {
    expect(parseVersion(text)).toBe(expected)
  })

  it.each([
    '',
    'v1.0.0',
    'v2.5.3-alpha1',
    'latest',
    '1.',
    '1..0',
    '1.2.3.4',
    '1.2.3-',
    '1.2.3+',
    '1.2.3-a..b',
    '1.2.3 ',
    '\n1.2.3',
    '1.2.3\n',
    '-1',
    '1.2.x',
    '１.0.0',
    'a'.repeat(200),
  ])('is undefined for what is no version: %j', (text) => {
    expect(parseVersion(text)).toBeUndefined()
    expect(thrownBy(() => assertVersion(text)).code).toBe('INVALID_ADDRESS')
  })

  it('is the identity on what it returns, for any text', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9v.+-]{1,12}$/), version)
    fc.assert(
      fc.property(text, (input) => {
        const parsed = parseVersion(input)
        if (parsed !== undefined) expect(parseVersion(parsed)).toBe(parsed)
        const asserted = outcome(() => assertVersion(input))
        if (isMirrorError(asserted)) expect([asserted.code, parsed]).toEqual(['INVALID_ADDRESS', undefined])
        else expect(asserted).toBe(parsed)
      }),
      { numRuns: 2000 },
    )
  })

  it('takes no longer for a megabyte', () => {
    for (const text of [
      '1'.repeat(1e6),
      '1.0.0-'.padEnd(1e6, 'a.'),
      '1.0.0-'.padEnd(1e6, '-'),
      '1.0.0+'.padEnd(1e6, '0'),
    ]) {
      expect(cpuMs(() => parseVersion(text))).toBeLessThan(2000)
    }
  })
})

describe('compareVersions', () => {
  it('has the order of semver', () => {
    fc.assert(
      fc.property(version, version, (a, b) => {
        const order = semver.compare(a, b)
        if (order !== 0) expect(Math.sign(compareVersions(a, b))).toBe(order)
      }),
      { numRuns: 3000 },
    )
  })

  it('is total: 0 for equal texts only, and the same whichever comes first', () => {
    const twins = [
      '1.0.0-01',
      '1.0.0-1',
      '1.0.0+1',
      '1.0.0+01',
      '1.0.0',
      '1.0.0-0.01+1',
      '1.0.0-0.1+1',
      '1.0.0-001',
    ].map(assertVersion)
    const any = fc.oneof(version, fc.constantFrom(...twins))
    fc.assert(
      fc.property(any, any, any, (a, b, c) => {
        expect(compareVersions(a, b) === 0).toBe(a === b)
        expect(Math.sign(compareVersions(a, b)) + Math.sign(compareVersions(b, a))).toBe(0)
        const [x, y, z] = [a, b, c].sort(compareVersions)
        if (x !== undefined && y !== undefined && z !== undefined) expect(compareVersions(x, z)).toBeLessThanOrEqual(0)
      }),
      { numRuns: 2000 },
    )
  })

  it('sorts a list as semver does, and keeps versions of equal precedence that differ in metadata', () => {
    fc.assert(
      fc.property(fc.uniqueArray(version, { maxLength: 12 }), (versions) => {
        const sorted = sortByVersion(versions, (each) => each)
        expect(sorted.toSorted()).toEqual(versions.toSorted())
        expect(sorted.map(withoutBuild)).toEqual(semver.sort([...versions]).map(withoutBuild))
      }),
    )
    const twins = ['1.0.0+2', '1.0.0', '1.0.0+1'].map(assertVersion)
    expect(sortByVersion(twins, (each) => each)).toEqual(['1.0.0', '1.0.0+1', '1.0.0+2'])
  })

  it('sorts a megabyte of versions at once', () => {
    const many = Array.from({ length: 60_000 }, (_, n) => assertVersion(`${n % 7}.${(n * 7919) % 60_000}.0-rc.${n}`))
    expect(cpuMs(() => sortByVersion(many, (each) => each))).toBeLessThan(2000)
  })

  it('compares numbers beyond 2^53 exactly', () => {
    expect(compareVersions(assertVersion('1.0.12345678901234567890'), assertVersion('1.0.12345678901234567891'))).toBe(
      -1,
    )
    expect(compareVersions(assertVersion('1.0.0-9'), assertVersion('1.0.0-10000000000000000000'))).toBeLessThan(0)
  })
})

function withoutBuild(text: string): string {
  return text.split('+', 1)[0] ?? ''
}
