import { formatPlatform, type Platform } from '../../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import { satisfies } from '../../protocol/version-constraint.ts'
import type { Mirror } from '../mirror.ts'
import type { PackageId } from '../stock/item-name.ts'
import type { View } from '../view.ts'
import type { LockedHashes } from './lock-comparison.ts'
import { ModuleWalk, type ModuleWalkParts } from './module-walk.ts'
import { originCall } from './origin-call.ts'
import { type WantedVersion, wantedByAll } from './wanted-version.ts'
import { orRefuse, type WarmWork } from './warm-work.ts'
import type { Platforms, Wishes } from './wishes.ts'

/** What `walkWishes` works with. */
export interface WarmWalkParts extends ModuleWalkParts {
  readonly mirror: Pick<Mirror, 'listPackages'>
  readonly view: View
}

/** A provider to choose a version of. */
interface Choice {
  readonly address: ProviderAddress
  /** The first of which there is a version counts; several are all wanted if there is none for all together. */
  readonly wanted: readonly WantedVersion[]
  readonly apart: boolean
  readonly platforms: Platforms
}

/** Does `work` with everything that was asked for: first modules and what they call, then the packages of providers. */
export async function walkWishes(wishes: Wishes, work: WarmWork, parts: WarmWalkParts): Promise<void> {
  await new WarmWalk(wishes, work, parts).run()
}

class WarmWalk {
  readonly #wishes: Wishes
  readonly #work: WarmWork
  readonly #parts: WarmWalkParts
  readonly #packages = new Map<string, { id: PackageId; locks: LockedHashes[] }>()

  constructor(wishes: Wishes, work: WarmWork, parts: WarmWalkParts) {
    this.#wishes = wishes
    this.#work = work
    this.#parts = parts
  }

  async run(): Promise<void> {
    const { locked, platforms } = this.#wishes
    const choices = await this.#choices()
    await this.#work.each(locked, ({ address, version, hashes }) => this.#want({ address, version, platforms }, hashes))
    await this.#work.each(choices, (choice) => this.#choose(choice))
    await this.#work.packages(Array.from(this.#packages, ([name, wanted]) => ({ name, ...wanted })))
  }

  /** Each once, whoever asks for it. */
  async #choices(): Promise<Iterable<Choice>> {
    const { providers, trees, platforms, followModules } = this.#wishes
    const choices = new Map<string, Choice>()
    const add = (choice: Choice): void => {
      const texts = choice.wanted.map(({ text }) => text).sort()
      const where = choice.platforms === 'all' ? ['*'] : choice.platforms.map(formatPlatform)
      choices.set(JSON.stringify([formatProviderAddress(choice.address), texts, choice.apart, where]), choice)
    }
    for (const { address, wanted, platforms: where } of providers) {
      add({ address, wanted: [wanted], apart: false, platforms: where })
    }
    const walk = new ModuleWalk(this.#parts, { work: this.#work, follows: followModules })
    for (const { whole, needs } of await walk.walk(trees)) {
      for (const { address, wanted } of needs) {
        if (whole && this.#isLocked(address, wantedByAll(wanted))) continue
        add({ address, wanted, apart: !whole, platforms })
      }
    }
    return choices.values()
  }

  /** What a client does with a configuration that has a lock file: the lock file decides, as long as it meets all wishes. */
  #isLocked(address: ProviderAddress, { constraint }: WantedVersion): boolean {
    const name = formatProviderAddress(address)
    return this.#wishes.locked.some(
      (locked) => formatProviderAddress(locked.address) === name && satisfies(locked.version, constraint),
    )
  }

  async #choose({ address, wanted, apart, platforms }: Choice): Promise<void> {
    const { choice } = this.#parts
    const { signal } = this.#work
    const all = wantedByAll(wanted)
    const separately = apart && wanted.length > 1
    if (separately) {
      const version = await choice.provider(address, all, signal).catch(() => undefined)
      signal.throwIfAborted()
      if (version !== undefined) return await this.#want({ address, version, platforms })
    }
    for (const each of separately ? wanted : [all]) {
      const name = `${formatProviderAddress(address)} ${each.text}`
      const version = await orRefuse(this.#work, name, () => choice.provider(address, each, signal))
      if (version !== undefined) await this.#want({ address, version, platforms })
    }
  }

  async #want(
    { address, version, platforms }: { address: ProviderAddress; version: Version; platforms: Platforms },
    locked?: LockedHashes,
  ): Promise<void> {
    const name = `${formatProviderAddress(address)} ${version}`
    const chosen =
      platforms === 'all' ? await orRefuse(this.#work, name, () => this.#published(address, version)) : platforms
    for (const platform of chosen ?? []) {
      const item = `${name} ${formatPlatform(platform)}`
      const wanted = this.#packages.get(item) ?? { id: { address, version, platform }, locks: [] }
      if (locked !== undefined) wanted.locks.push(locked)
      this.#packages.set(item, wanted)
    }
  }

  async #published(address: ProviderAddress, version: Version): Promise<Platform[]> {
    const { mirror, view } = this.#parts
    const { value } = await mirror.listPackages(view, address, version, originCall(this.#work.signal))
    return value.map(({ platform }) => platform)
  }
}
