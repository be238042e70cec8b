import { Refresh } from '../../../src/mirror/care/refresh.ts'
import { parseHostname } from '../../../src/protocol/hostname.ts'
import { createParts, everything, type PartsOptions, type TestParts } from '../parts-fixture.ts'
import { createModuleParts } from '../scripted-module-upstream.ts'

/** `Refresh` over the use cases of providers and those of modules. */
export function createRefresh(options: PartsOptions = {}, isSealed = false) {
  const parts = createParts(options)
  const module = createModuleParts()
  const refresh = new Refresh({
    ...{ isSealed, view: everything, defaultHost: parseHostname('registry.example.test') },
    ...{ catalogue: parts.catalogue, versions: parts.versions, releases: parts.releases },
    ...{ moduleCatalogue: module.catalogue, moduleLists: module.lists, modules: module.modules },
    removeBlob: (digest) => module.blobs.delete(digest),
  })
  return { ...parts, module, refresh }
}

/** What a client of the network mirror would be told and given of a version, by platform: the digests. */
export async function servedBy({ catalogue, blobs }: Pick<TestParts, 'catalogue' | 'blobs'>, id: HeldId) {
  const { release, archives } = await catalogue.version(id.address, id.version)
  const told = Object.entries(release?.platforms ?? {}).map(([name, { digest }]) => [name, digest] as const)
  const given = await Promise.all(
    [...archives].map(async ([name, { digest }]) => [name, (await blobs.stat(digest))?.digest ?? 'lost'] as const),
  )
  return { told: Object.fromEntries(told), given: Object.fromEntries(given) }
}

type HeldId = {
  address: Parameters<TestParts['catalogue']['version']>[0]
  version: Parameters<TestParts['catalogue']['version']>[1]
}
