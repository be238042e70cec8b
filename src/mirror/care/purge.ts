import { MirrorError } from '../../errors.ts'
import { formatModuleAddress, type ModuleAddress } from '../../protocol/module-address.ts'
import { formatPlatform, type Platform, parsePlatformName } from '../../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import type { Catalogue } from '../catalogue.ts'
import type { ModuleCatalogue } from '../module-catalogue.ts'
import type { PinnedSets } from '../pins/pinned-sets.ts'
import type { Releases } from '../releases.ts'
import { type HeldItem, moduleItem, packageItem } from '../stock/held-item.ts'
import { formatModuleName, formatPackageName } from '../stock/item-name.ts'
import type { ItemRemoval } from '../stock/item-removal.ts'

/** What to remove: everything of a provider or module, or of one version, or one package. */
export type PurgeScope =
  | {
      readonly kind: 'package'
      readonly address: ProviderAddress
      readonly version?: Version | undefined
      readonly platform?: Platform | undefined
    }
  | { readonly kind: 'module'; readonly address: ModuleAddress; readonly version?: Version | undefined }

/** What was removed, by name. */
export interface PurgeResult {
  readonly removed: readonly string[]
  /** What stays, because a set of pins holds it. */
  readonly pinned: readonly string[]
  /** Of the files that are gone. */
  readonly bytes: number
}

/** What `Purge` is made of. */
export interface PurgeParts {
  readonly catalogue: Catalogue
  readonly moduleCatalogue: ModuleCatalogue
  readonly releases: Releases
  readonly pins: Pick<PinnedSets, 'isPinned'>
  readonly removal: Pick<ItemRemoval, 'remove'>
}

/** Removes what is held, on an operator's word. What sets of pins hold stays. */
export class Purge {
  readonly #parts: PurgeParts

  constructor(parts: PurgeParts) {
    this.#parts = parts
  }

  /**
   * Removes packages or modules; a client that asks for them gets them from their origin again, and they must be as they
   * were. With `forget` the evidence of each version of which nothing is pinned goes too, and with it the promise that it
   * never changes; of a whole provider of which nothing is pinned, also the memory that it was signed.
   * @throws MirrorError `ITEM_NOT_FOUND` if nothing of the scope is held, and nothing could be forgotten;
   *   `REQUEST_INVALID` for `forget` with a platform; `STORAGE_*`: what was removed until then stays removed
   */
  async purge(scope: PurgeScope, { forget }: { forget: boolean }): Promise<PurgeResult> {
    if (scope.kind === 'module') return await this.#modules(scope, forget)
    if (forget && scope.platform !== undefined) throw forgetsVersions()
    return await this.#packages(scope, forget)
  }

  async #packages(
    { address, version, platform }: PurgeScope & { kind: 'package' },
    forget: boolean,
  ): Promise<PurgeResult> {
    const { catalogue } = this.#parts
    const purged = new Purged()
    let hasEvidence = false
    for (const each of version === undefined ? await catalogue.records.versions(address) : [version]) {
      const { release, pin, archives } = await catalogue.look(address, each)
      const items = [...archives]
        .filter(([name]) => platform === undefined || name === formatPlatform(platform))
        .map(([name, archive]) => packageItem(nameOf(address, each, name), archive))
      const keepsSome = await this.#remove(items, purged)
      hasEvidence ||= release !== undefined || pin !== undefined
      if (platform === undefined && !keepsSome) await this.#deleteVersion(address, each, forget)
    }
    const trusted = forget && version === undefined && (await catalogue.trust(address)) !== undefined
    if (trusted && purged.pinned.length === 0) await catalogue.deleteTrust(address)
    if (purged.isEmpty && !(forget && (hasEvidence || trusted))) {
      const parts = [formatProviderAddress(address), version, platform && formatPlatform(platform)]
      throw notHeld(parts.filter((part) => part !== undefined).join(' '))
    }
    return purged
  }

  async #modules({ address, version }: PurgeScope & { kind: 'module' }, forget: boolean): Promise<PurgeResult> {
    const { moduleCatalogue } = this.#parts
    const purged = new Purged()
    let forgotten = false
    for (const each of version === undefined ? await moduleCatalogue.recordedVersions(address) : [version]) {
      const name = formatModuleName({ address, version: each })
      const record = await moduleCatalogue.read(address, each)
      const isPinned = record !== undefined && (await this.#remove([moduleItem(name, record)], purged))
      if (!forget || isPinned) continue
      forgotten ||= (await moduleCatalogue.recall(address, each)) !== undefined
      await moduleCatalogue.forget(address, each)
    }
    if (purged.isEmpty && !forgotten) throw notHeld([formatModuleAddress(address), version].filter(Boolean).join(' '))
    return purged
  }

  /** True if some of them are pinned. */
  async #remove(items: readonly HeldItem[], purged: Purged): Promise<boolean> {
    const { pins, removal } = this.#parts
    let keepsSome = false
    for (const item of items) {
      if (pins.isPinned(item.name)) {
        purged.pinned.push(item.name)
        keepsSome = true
        continue
      }
      purged.bytes += await removal.remove(item)
      purged.removed.push(item.name)
    }
    return keepsSome
  }

  /** Also records of archives that cannot be read; the evidence only with `forget`. */
  async #deleteVersion(address: ProviderAddress, version: Version, forget: boolean): Promise<void> {
    const { catalogue, releases } = this.#parts
    const remove = (): Promise<void> => catalogue.deleteVersion(address, version, { forget })
    await (forget ? releases.forget(address, version, remove) : remove())
  }
}

class Purged implements PurgeResult {
  readonly removed: string[] = []
  readonly pinned: string[] = []
  bytes = 0

  get isEmpty(): boolean {
    return this.removed.length === 0 && this.pinned.length === 0
  }
}

/** The name of a record that is no platform's is shown as it is. */
function nameOf(address: ProviderAddress, version: Version, name: string): string {
  const platform = parsePlatformName(name)
  if (platform !== undefined) return formatPackageName({ address, version, platform })
  return `${formatProviderAddress(address)} ${version} ${name}`
}

function notHeld(item: string): MirrorError<'ITEM_NOT_FOUND'> {
  return new MirrorError('ITEM_NOT_FOUND', `nothing of ${item} is held`, { item })
}

function forgetsVersions(): MirrorError<'REQUEST_INVALID'> {
  const problem = 'evidence belongs to a whole version: forget a version or a provider, not a platform'
  return new MirrorError('REQUEST_INVALID', problem, { problems: [problem] })
}
