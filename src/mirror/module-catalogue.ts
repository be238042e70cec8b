import { LRUCache } from 'lru-cache'
import type { Log } from '../log.ts'
import { formatModuleAddress, type ModuleAddress } from '../protocol/module-address.ts'
import { compareVersions, parseVersion, type Version } from '../protocol/version.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'
import { ModuleRecord } from './module-record.ts'

/**
 * Which module versions are held: a typed view of the records with a bounded copy in memory.
 *
 * On disk: `modules/HOST/NAMESPACE/NAME/SYSTEM/VERSION`.
 */
export class ModuleCatalogue {
  readonly #records: RecordStore
  readonly #log: Log
  readonly #known = new LRUCache<string, ModuleRecord>({ max: 1_000 })

  constructor(records: RecordStore, log: Log) {
    this.#records = records
    this.#log = log
  }

  /** @throws MirrorError `STORAGE_FAILED` */
  async find(address: ModuleAddress, version: Version): Promise<ModuleRecord | undefined> {
    const name = `${formatModuleAddress(address)} ${version}`
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const key = [...moduleKey(address), version]
    const stored = await this.#records.get(key)
    if (stored === undefined) return undefined
    const parsed = ModuleRecord.safeParse(stored)
    if (parsed.success) {
      this.#known.set(name, parsed.data)
      return parsed.data
    }
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

  /** @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  async save(address: ModuleAddress, record: ModuleRecord): Promise<void> {
    await this.#records.put([...moduleKey(address), record.version], record)
    this.#known.set(`${formatModuleAddress(address)} ${record.version}`, record)
  }
}

function moduleKey({ hostname, namespace, name, targetSystem }: ModuleAddress): RecordKey {
  return ['modules', hostname, namespace, name, targetSystem]
}
