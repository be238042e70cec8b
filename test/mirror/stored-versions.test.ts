import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseStoredVersions } from '../../src/mirror/stored-versions.ts'
import { parseProviderVersions } from '../../src/protocol/provider-versions.ts'
import { cpuMs } from '../protocol/only-mirror-errors.ts'

const source = { host: 'reg.example.test', upstreamUrl: 'https://reg.example.test/v1/providers/acme/widget/versions' }

it('a list comes back from the cache as it was read, whatever the origin listed', () => {
  const entry = fc.oneof(
    fc.jsonValue(),
    fc.record({
      version: fc.constantFrom('1.0.0', '1.1', '01.2.3', '1.0.0+b', '1.0.0-rc.1', 'v1', '1.0.18446744073709551616'),
      protocols: fc.jsonValue(),
      platforms: fc.array(fc.record({ os: fc.constantFrom('linux', 'a_b'), arch: fc.string() })),
    }),
  )
  fc.assert(
    fc.property(fc.array(entry), fc.array(fc.string()), (versions, warnings) => {
      const list = parseProviderVersions({ versions, warnings }, source)
      expect(parseStoredVersions(JSON.parse(JSON.stringify(list)))).toEqual(list)
    }),
  )
})

it('what is no list is none, and nothing is thrown', () => {
  fc.assert(fc.property(fc.jsonValue(), (stored) => parseStoredVersions(stored) === undefined))
})

it('a megabyte takes no longer', () => {
  const versions = Array.from({ length: 45_000 }, (_, n) => ({ version: `0.${n}.0` }))
  const list = parseProviderVersions({ versions }, source)
  expect(cpuMs(() => parseStoredVersions(list))).toBeLessThan(2_000)
})
