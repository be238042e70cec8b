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

/**
 * Which module versions are held: a typed view of the records with a bounded copy in memory.
 *
 * On disk: `modules/HOST/NAMESPACE/NAME/SYSTEM/VERSION`.
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
  async read(address: ModuleAddress, version: Version): Promise<ModuleRecord | undefined> {
    const key = [...moduleKey(address), version]
    const stored = await this.#records.get(key)
    if (stored === undefined) return undefined
    const parsed = ModuleRecord.safeParse(stored)
    if (parsed.success) return parsed.data
    // As good as none, and told: the origin can give it again.
    this.#log.error(
      { record: key.join('/'), problems: parsed.error.issues.slice(0, 3) },
      'ignored an unreadable record',
    )
    return undefined
  }

  /** The versions that are held, ascending. @throws MirrorError `STORAGE_FAILED` */
  async heldVersions(address: ModuleAddress): Promise<Version[]> {
    const names = await this.#records.children(moduleKey(address))
    return names
      .map(parseVersion)
      .filter((version) => version !== undefined)
      .sort(compareVersions)
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

  /** Forgets a version; fine if it is not held. Its blobs stay: see `ItemRemoval`. @throws MirrorError `STORAGE_FAILED` */
  async delete(address: ModuleAddress, version: Version): Promise<void> {
    await this.#changing(formatModuleName({ address, version }), async () => {
      await this.#records.delete([...moduleKey(address), version])
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

function moduleKey({ hostname, namespace, name, targetSystem }: ModuleAddress): RecordKey {
  return ['modules', hostname, namespace, name, targetSystem]
}
