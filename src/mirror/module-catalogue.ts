import { LRUCache } from 'lru-cache'
import type { Log } from '../log.ts'
import { findModuleAddress, type ModuleAddress } from '../protocol/module-address.ts'
import { compareVersions, parseVersion, type Version } from '../protocol/version.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'
import { SerialByKey } from '../store/serial-by-key.ts'
import { ModuleRecord } from './module-record.ts'
import { moduleItem } from './stock/held-item.ts'
import type { Inventory } from './stock/inventory.ts'
import { formatModuleName } from './stock/item-name.ts'
import { readStoredRecord } from './stored-record.ts'

/**
 * Which module versions are held: a typed view of the records with a bounded copy in memory.
 *
 * On disk: `modules/HOST/NAMESPACE/NAME/SYSTEM/VERSION`; what was held once, below `module-pins` instead of `modules`.
 */
export class ModuleCatalogue {
  readonly #records: RecordStore
  readonly #inventory: Inventory
  readonly #log: Log
  /** Of one version: what is read and kept in memory is never from before a change. */
  readonly #serial = new SerialByKey()
  readonly #known = new LRUCache<string, ModuleRecord>({ max: 1_000 })

  /** Tells `inventory` what changes. */
  constructor(records: RecordStore, inventory: Inventory, log: Log) {
    this.#records = records
    this.#inventory = inventory
    this.#log = log
  }

  /** @throws MirrorError `STORAGE_FAILED` */
  async find(address: ModuleAddress, version: Version): Promise<ModuleRecord | undefined> {
    const name = formatModuleName({ address, version })
    const known = this.#known.get(name)
    if (known !== undefined) return known
    return this.#serial.run(name, async () => {
      const record = await this.read(address, version)
      if (record !== undefined) this.#known.set(name, record)
      return record
    })
  }

  /** The record as it is on the disk; no copy is kept of it. @throws MirrorError `STORAGE_FAILED` */
  read(address: ModuleAddress, version: Version): Promise<ModuleRecord | undefined> {
    return this.#read([...moduleKey(address), version])
  }

  /**
   * What a version is, or was when it was held the last time: its files may not change though its archive is gone, as
   * the pin of a provider's release says of that. @throws MirrorError `STORAGE_FAILED`
   */
  async recall(address: ModuleAddress, version: Version): Promise<ModuleRecord | undefined> {
    return (await this.find(address, version)) ?? (await this.#read([...pinKey(address), version]))
  }

  #read(key: RecordKey): Promise<ModuleRecord | undefined> {
    return readStoredRecord({ records: this.#records, log: this.#log }, key, ModuleRecord)
  }

  /** The versions that are held, ascending. @throws MirrorError `STORAGE_FAILED` */
  async heldVersions(address: ModuleAddress): Promise<Version[]> {
    return toVersions(await this.#records.children(moduleKey(address)))
  }

  /** The versions that are held, and those of which is known what they were. Ascending. @throws MirrorError `STORAGE_FAILED` */
  async recordedVersions(address: ModuleAddress): Promise<Version[]> {
    const held = await this.#records.children(moduleKey(address))
    return toVersions(new Set([...held, ...(await this.#records.children(pinKey(address)))]))
  }

  /** Every module of which there is a record. @throws MirrorError `STORAGE_FAILED` */
  async *modules(): AsyncIterable<ModuleAddress> {
    for (const hostname of await this.#records.children(['modules'])) {
      for (const namespace of await this.#records.children(['modules', hostname])) {
        for (const name of await this.#records.children(['modules', hostname, namespace])) {
          for (const targetSystem of await this.#records.children(['modules', hostname, namespace, name])) {
            const address = findModuleAddress({ hostname, namespace, name, targetSystem })
            if (address !== undefined) yield address
          }
        }
      }
    }
  }

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async save(address: ModuleAddress, record: ModuleRecord): Promise<void> {
    const { version } = record
    const name = formatModuleName({ address, version })
    await this.#changing(name, async () => {
      await this.#records.put([...moduleKey(address), version], record)
      this.#known.set(name, record)
      return record
    })
  }

  /**
   * A version is not held any more; fine if it was not. What it was is remembered first. Its blobs stay: see
   * `ItemRemoval`. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  async delete(address: ModuleAddress, version: Version): Promise<void> {
    await this.#changing(formatModuleName({ address, version }), async () => {
      const record = await this.read(address, version)
      if (record !== undefined) await this.#records.put([...pinKey(address), version], { ...record, earlier: [] })
      await this.#records.delete([...moduleKey(address), version])
      return undefined
    })
  }

  /** Forgets also what a version was: it may come again with other files. @throws MirrorError `STORAGE_FAILED` */
  async forget(address: ModuleAddress, version: Version): Promise<void> {
    await this.#changing(formatModuleName({ address, version }), async () => {
      await this.#records.delete([...moduleKey(address), version])
      await this.#records.delete([...pinKey(address), version])
      return undefined
    })
  }

  #changing(name: string, write: () => Promise<ModuleRecord | undefined>): Promise<void> {
    return this.#serial.run(name, () =>
      this.#inventory.change(name, async () => {
        // If it fails, it may be on the disk all the same.
        this.#known.delete(name)
        const record = await write()
        return record && moduleItem(name, record)
      }),
    )
  }
}

function toVersions(names: Iterable<string>): Version[] {
  return Array.from(names, parseVersion)
    .filter((version) => version !== undefined)
    .sort(compareVersions)
}

function moduleKey({ hostname, namespace, name, targetSystem }: ModuleAddress): RecordKey {
  return ['modules', hostname, namespace, name, targetSystem]
}

function pinKey(address: ModuleAddress): RecordKey {
  return ['module-pins', ...moduleKey(address).slice(1)]
}
