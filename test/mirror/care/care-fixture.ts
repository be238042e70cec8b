import { Purge } from '../../../src/mirror/care/purge.ts'
import { Refresh } from '../../../src/mirror/care/refresh.ts'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { ItemRemoval } from '../../../src/mirror/stock/item-removal.ts'
import { RecordedModules, RecordedPackages } from '../../../src/mirror/stock/recorded-items.ts'
import { parseHostname } from '../../../src/protocol/hostname.ts'
import { assertSha256 } from '../../../src/protocol/package-hash.ts'
import type { ProviderAddress } from '../../../src/protocol/provider-address.ts'
import type { Version } from '../../../src/protocol/version.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import { createParts, everything, type PartsOptions, type TestParts } from '../parts-fixture.ts'
import { createModuleParts } from '../scripted-module-upstream.ts'

export const defaultHost = parseHostname('registry.example.test')

/** What care is made of, over the use cases of providers and modules, which share their stores. */
export async function createCare(options: PartsOptions = {}, { isSealed = false } = {}) {
  const parts = createParts({ ...options, ...(isSealed ? { upstreamFor: () => undefined } : {}) })
  const { records, blobs, inventory, catalogue, versions, releases, hashes, shutdown, log, clock } = parts
  const module = createModuleParts({ records, blobs, inventory, isSealed })
  const { catalogue: moduleCatalogue, lists: moduleLists, modules } = module
  await inventory.start([new RecordedPackages(catalogue), new RecordedModules(moduleCatalogue)], shutdown.signal)
  const forget = (digest: string): Promise<void> => hashes.forget(assertSha256(digest))
  const removal = new ItemRemoval({ catalogue, modules: moduleCatalogue, inventory, blobs, forget })
  const refresh = new Refresh({
    ...{ isSealed, view: everything, defaultHost, catalogue, versions, releases },
    ...{ moduleCatalogue, moduleLists, modules, removal },
  })
  const pins = await PinnedSets.open({ records: new MemoryRecordStore(), now: clock.now, log })
  const purge = new Purge({ catalogue, moduleCatalogue, releases, pins, removal })
  return { ...parts, module, moduleCatalogue, removal, refresh, pins, purge }
}

/** What a client of the network mirror would be told and given of a version, by platform: the digests. */
export async function servedBy(
  { catalogue, blobs }: Pick<TestParts, 'catalogue' | 'blobs'>,
  id: { address: ProviderAddress; version: Version },
) {
  const { release, archives } = await catalogue.version(id.address, id.version)
  const told = Object.entries(release?.platforms ?? {}).map(([name, { digest }]) => [name, digest] as const)
  const given = await Promise.all(
    [...archives].map(async ([name, { digest }]) => [name, (await blobs.stat(digest))?.digest ?? 'lost'] as const),
  )
  return { told: Object.fromEntries(told), given: Object.fromEntries(given) }
}
