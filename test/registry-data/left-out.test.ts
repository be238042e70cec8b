import { expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import type { Site } from './data-origin.ts'
import { readProvider } from './data-set.ts'
import { startMirrorOver } from './registry-mirror.ts'
import { createRegistrySite } from './registry-site.ts'
import { forEachOf } from './tally.ts'

const HOST = 'registry.example.test'

function siteOf(names: readonly string[]): Promise<Site> {
  return createRegistrySite(
    HOST,
    names.map((name) => ({ name, data: readProvider(name) })),
  )
}

describeVectors('what is left out of real registry data is left out for a stated reason', () => {
  test.each([
    { signatures: 'required', keyless: 502, code: 'SIGNATURE_REQUIRED' },
    { signatures: 'whenListed', keyless: 200, code: undefined },
  ])('providers without keys where signatures are $signatures', async ({ signatures, keyless, code }) => {
    const names = ['marcofranssen/curl', 'ojford/wireguard']
    const origins = { [HOST]: { verification: { signatures } } }
    await using registry = await startMirrorOver(await siteOf(names), { hosts: [HOST], origins })
    await forEachOf(readProvider('marcofranssen/curl').versions, 4, async ({ version }) => {
      const { status, json } = await registry.ask(`${HOST}/marcofranssen/curl/${version}.json`)
      expect([status, json.code], version).toEqual([keyless, code])
    })
    await forEachOf(readProvider('ojford/wireguard').versions, 4, async ({ version, targets }) => {
      const { status, json } = await registry.ask(`${HOST}/ojford/wireguard/${version}.json`)
      expect([status, Object.keys(json.archives).length], version).toEqual([200, targets.length])
    })
  })

  test('two entries for one version: as long as one is served whole, it is the one', async () => {
    await using registry = await startMirrorOver(await siteOf(['chanzuckerberg/okta']), {
      hosts: [HOST],
      origins: { [HOST]: { verification: { signatures: 'whenListed' } } },
    })
    const { json } = await registry.ask(`${HOST}/chanzuckerberg/okta/3.7.4.json`)
    const [, later] = readProvider('chanzuckerberg/okta').versions.filter(({ version }) => version === '3.7.4')
    const expected = later?.targets.map(({ os, arch, shasum }) => [`${os}_${arch}`, [`zh:${shasum}`]]) ?? []
    expect(expected).toHaveLength(14)
    const hashes = Object.entries<{ hashes: string[] }>(json.archives).map(([name, entry]) => [name, entry.hashes])
    expect(Object.fromEntries(hashes)).toEqual(Object.fromEntries(expected))
  })

  test('two entries for one version, served mixed: the digests contradict each other, and none is believed', async () => {
    const { versions } = readProvider('chanzuckerberg/okta')
    const reversed = { versions: [...versions].reverse() }
    const site = await createRegistrySite(HOST, [{ name: 'chanzuckerberg/okta', data: reversed }])
    await using registry = await startMirrorOver(site, {
      hosts: [HOST],
      origins: { [HOST]: { verification: { signatures: 'whenListed' } } },
    })
    const { status, json } = await registry.ask(`${HOST}/chanzuckerberg/okta/3.7.4.json`)
    expect([status, json.code]).toEqual([502, 'CHECKSUMS_INVALID'])
    expect(json.error).toMatch(/gives terraform-provider-okta_3\.7\.4_\w+\.zip two digests/)
  })

  test('versions that are no versions, in a list of real ones: they alone are left out, and the log names them', async () => {
    const real = readProvider('vmware/vmc')
    const [first] = real.versions
    if (first === undefined) throw new Error('an empty provider')
    const odd = ['v1.0.0', 'latest', '', '1.2.3.4', '1.0.0-', '1.0.0+', '1.0.0-a..b', ' 1.0.1', '1.14.0']
    const data = { versions: [...odd.map((version) => ({ ...first, version })), ...real.versions] }
    await using registry = await startMirrorOver(await createRegistrySite(HOST, [{ name: 'vmware/vmc', data }]), {
      hosts: [HOST],
    })
    const { json } = await registry.ask(`${HOST}/vmware/vmc/index.json`)
    expect(Object.keys(json.versions)).toHaveLength(real.versions.length)
    const [line] = registry.mirror.logLines.filter(({ problems }) => problems !== undefined)
    expect(line?.problems).toEqual([
      'left out "v1.0.0": not a version as clients accept it',
      'left out "latest": not a version as clients accept it',
      'left out "": not a version as clients accept it',
      'left out "1.2.3.4": not a version as clients accept it',
      'left out "1.0.0-": not a version as clients accept it',
      'left out "1.0.0+": not a version as clients accept it',
      'left out "1.0.0-a..b": not a version as clients accept it',
      'left out " 1.0.1": not a version as clients accept it',
      'left out "1.14": the same version as "1.14.0"',
    ])
  })
})
