import type { Log } from '../log.ts'
import { findProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import { DiskRecordStore } from '../store/disk/disk-record-store.ts'
import { DurableFolders } from '../store/disk/durable-folders.ts'

/** A package whose archive is held. */
export interface HeldPackage {
  readonly address: ProviderAddress
  readonly version: string
  readonly platform: string
}

/** How many providers are looked into, so that a large folder does not take long. */
const MAX_LOOKS = 50

/** Some package of the data folder, of this host if one is given; undefined if none is found. Only names are read. */
export async function findHeldPackage(dataDir: string, log: Log, host?: string): Promise<HeldPackage | undefined> {
  const records = new DiskRecordStore(new DurableFolders(dataDir), log)
  const below = (...names: string[]) => records.children(['providers', ...names]).catch(() => [])
  let looks = 0
  for (const hostname of host === undefined ? await below() : [host]) {
    for (const namespace of await below(hostname)) {
      for (const type of await below(hostname, namespace)) {
        const address = findProviderAddress({ hostname, namespace, type })
        if (address === undefined || ++looks > MAX_LOOKS) continue
        for (const version of await below(hostname, namespace, type, 'versions')) {
          const [platform] = await below(hostname, namespace, type, 'versions', version, 'archives')
          if (platform !== undefined) return { address, version, platform }
        }
      }
    }
  }
  return undefined
}
