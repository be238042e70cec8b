import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeVectors } from '../protocol/vectors.ts'
import { usableProvider } from './client-rules.ts'
import type { Site } from './data-origin.ts'
import { type ProviderData, readProviderData, readProviders, type Target } from './data-set.ts'
import { startMirrorOver } from './registry-mirror.ts'
import { createRegistrySite, type SiteProvider } from './registry-site.ts'
import { forEachOf, Tally } from './tally.ts'

const HOST = 'registry.opentofu.org'
/** Odd providers with few versions: enough to see every oddity of names and versions in this form too. */
const FEW_VERSIONS = 11

function readWaypoint(): SiteProvider {
  return { name: 'hashicorp/waypoint', data: readProviderData('providers-2026-format/hashicorp-waypoint.json') }
}

describeVectors('a registry in the form of 2026, with `packages`', () => {
  test('real data: every platform has its zh first, then its h1', async () => {
    const tally = await compareAll([readWaypoint()])
    expect(tally.toObject()).toEqual({ versions: 1, 'platforms with zh, then h1': 10 })
  })

  test('odd names and versions, with an h1 made by the test for each zip: none is lost or mixed up', async () => {
    const odd = readProviders().flatMap(({ name, group, data }) =>
      name === undefined || group === 'popular' || data.versions.length > FEW_VERSIONS
        ? []
        : [{ name, data: withMadeUpH1(data) }],
    )
    const tally = await compareAll(odd)
    expect(tally.toObject()).toEqual({ versions: 163, 'platforms with zh, then h1': 1358 })
  })

  test('a zh in `packages` that contradicts the release drops the claims of that platform, and of no other', async () => {
    const waypoint = readWaypoint()
    const site = changePackages(await createRegistrySite(HOST, [waypoint]), (packages) => {
      packages.linux_amd64?.hashes.splice(0, 1, `zh:${'0'.repeat(64)}`)
    })
    await using registry = await startMirrorOver(site, { hosts: [HOST] })
    for (const [platform, target] of targetsOf(waypoint)) {
      const expected = platform === 'linux_amd64' ? [`zh:${target.shasum}`] : [`zh:${target.shasum}`, target.h1]
      expect(await hashesOf(registry, platform), platform).toEqual(expected)
    }
    const noted = registry.mirror.logLines.filter(({ msg }) => String(msg).includes('unsigned hashes'))
    expect(noted.map(({ msg }) => msg)).toEqual([
      expect.stringContaining('dropped 2 unsigned hashes of terraform-provider-waypoint_0.1.0_linux_amd64.zip'),
    ])
  })

  test('`packages` without the platform, without hashes, or with hashes of unknown schemes leaves the zh alone', async () => {
    const waypoint = readWaypoint()
    const site = changePackages(await createRegistrySite(HOST, [waypoint]), (packages) => {
      delete packages.linux_amd64
      packages.linux_arm64?.hashes.splice(0)
      packages.darwin_amd64?.hashes.splice(0, 2, 'h2:AAAA', 'h1:short', 'no scheme')
      // Order and repetition are the origin's; what a client gets has zh first and each hash once.
      packages.darwin_arm64?.hashes.reverse().push(...packages.darwin_arm64.hashes)
    })
    await using registry = await startMirrorOver(site, { hosts: [HOST] })
    for (const [platform, target] of targetsOf(waypoint)) {
      const alone = ['linux_amd64', 'linux_arm64', 'darwin_amd64'].includes(platform)
      const expected = alone ? [`zh:${target.shasum}`] : [`zh:${target.shasum}`, target.h1]
      expect(await hashesOf(registry, platform), platform).toEqual(expected)
    }
  })
})

async function hashesOf(registry: { ask(path: string): Promise<{ json: unknown }> }, platform: string) {
  const { json } = await registry.ask(`${HOST}/hashicorp/waypoint/0.1.0.json`)
  return (json as { archives: Record<string, { hashes: string[] }> }).archives[platform]?.hashes
}

/** Serves the providers and holds every hash of every version document against the data. */
async function compareAll(providers: readonly SiteProvider[]): Promise<Tally> {
  const tally = new Tally()
  const wrong: string[] = []
  await using registry = await startMirrorOver(await createRegistrySite(HOST, providers), { hosts: [HOST] })
  const versions = providers.flatMap(({ name, data }) =>
    [...usableProvider(data).versions].map(([version, { targets }]) => ({ name, version, targets })),
  )
  await forEachOf(versions, 8, async ({ name, version, targets }) => {
    const { status, json } = await registry.ask(`${HOST}/${name}/${version}.json`)
    tally.add('versions')
    const listed = Object.entries<{ hashes: string[] }>(json.archives ?? {})
    if (status !== 200 || listed.length !== targets.size) wrong.push(`${name} ${version}: ${status}`)
    for (const [platform, { hashes }] of listed) {
      const { shasum, h1 } = targets.get(platform) ?? {}
      if (hashes.join() === `zh:${shasum},${h1}`) tally.add('platforms with zh, then h1')
      else wrong.push(`${name} ${version} ${platform}: ${hashes}`)
    }
  })
  console.log(`registry data in the form of 2026:\n${tally}`)
  expect(wrong).toEqual([])
  return tally
}

function targetsOf({ data }: SiteProvider): ReadonlyMap<string, Target> {
  return usableProvider(data).versions.get('0.1.0')?.targets ?? new Map()
}

/** An h1 that follows from the zip's digest: another one for every zip, and the right one can be told. */
function withMadeUpH1({ versions, ...rest }: ProviderData): ProviderData {
  const h1Of = (shasum: string): string => `h1:${createHash('sha256').update(shasum).digest('base64')}`
  return {
    ...rest,
    versions: versions.map((entry) => ({
      ...entry,
      targets: entry.targets.map((target) => ({ ...target, h1: h1Of(target.shasum), size: 1 })),
    })),
  }
}

type Packages = Record<string, { hashes: string[] }>

/** The site with other `packages` in every download document. */
function changePackages(site: Site, change: (packages: Packages) => void): Site {
  return async (url) => {
    const reply = await site(url)
    if (reply === undefined || !url.includes('/download/') || url.includes('github.com')) return reply
    const document = JSON.parse(String(reply.body))
    change(document.packages)
    return { ...reply, body: JSON.stringify(document) }
  }
}
