import { formatModuleAddress } from '../../protocol/module-address.ts'
import { parseModuleSource } from '../../protocol/module-source.ts'
import {
  formatProviderAddress,
  type ProviderAddress,
  parseProviderAddressText,
} from '../../protocol/provider-address.ts'
import type { ModuleCalls } from '../care/module-calls.ts'
import type { ModuleRecord } from '../module-record.ts'
import type { ModuleId } from '../stock/item-name.ts'
import { formatModuleName } from '../stock/item-name.ts'
import { notMirrored } from './outcomes.ts'
import type { VersionChoice } from './version-choice.ts'
import { LATEST, parseWantedVersion, type WantedVersion } from './wanted-version.ts'
import { orRefuse, type WarmWork } from './warm-work.ts'
import type { ModuleTree, ModuleWish } from './wishes.ts'

/** Modules that call each other deeper than people ever let them. */
const MAX_DEPTH = 10

/** Reads what a held module calls; undefined as `subfolder` stands for its root and every submodule. */
export type ReadCalls = (record: ModuleRecord, subfolder?: string) => Promise<ModuleCalls | null>

/** What `ModuleWalk` is made of. */
export interface ModuleWalkParts {
  readonly choice: VersionChoice
  readonly readCalls: ReadCalls
}

/** What the modules of a tree ask of one provider, all of them together. */
export interface ProviderNeed {
  readonly address: ProviderAddress
  /** Empty: any version will do. */
  readonly wanted: readonly WantedVersion[]
}

/** A tree that was walked. */
export interface WalkedTree {
  readonly whole: boolean
  readonly needs: readonly ProviderNeed[]
}

/** One call to visit. */
interface Step {
  readonly tree: GrowingTree
  readonly module: ModuleWish
}

/** Follows modules to what they call, level by level, by the modules' own files. */
export class ModuleWalk {
  readonly #parts: ModuleWalkParts
  readonly #work: WarmWork
  readonly #follows: boolean
  readonly #brought = new Map<string, Promise<ModuleRecord | undefined>>()

  /** `follows`: also what modules call. */
  constructor(parts: ModuleWalkParts, { work, follows }: { work: WarmWork; follows: boolean }) {
    this.#parts = parts
    this.#work = work
    this.#follows = follows
  }

  /** Brings the modules of all trees, and tells which providers they need. @throws the reason of the signal of the work */
  async walk(trees: readonly ModuleTree[]): Promise<WalkedTree[]> {
    const growing = trees.map((tree) => new GrowingTree(tree))
    let steps = growing.flatMap((tree, n) => (trees[n]?.modules ?? []).map((module): Step => ({ tree, module })))
    for (const { item, refusal } of trees.flatMap(({ refused }) => refused)) this.#work.refuse(item, refusal)
    for (let depth = 1; steps.length > 0; depth++) {
      if (depth > MAX_DEPTH) {
        for (const { module } of steps) this.#work.refuse(nameOf(module), tooDeep)
        break
      }
      const next: Step[] = []
      await this.#work.each(steps, async (step) => void next.push(...(await this.#visit(step))))
      steps = next
    }
    return growing.map((tree) => tree.walked())
  }

  /** Brings a module, and gives what it calls. */
  async #visit({ tree, module }: Step): Promise<Step[]> {
    const { address, wanted, subfolder } = module
    const { choice, readCalls } = this.#parts
    const { signal } = this.#work
    const version = await orRefuse(this.#work, nameOf(module), () => choice.module(address, wanted, signal))
    if (version === undefined) return []
    const id = { address, version }
    const name = formatModuleName(id)
    const place = subfolder ? `${name} //${subfolder}` : name
    if (!tree.reach(subfolder === undefined ? `${place} *` : place)) return []
    const record = await this.#bring(id)
    if (record === undefined || !this.#follows) return []
    const calls = await orRefuse(this.#work, place, () => readCalls(record, subfolder))
    if (calls === null) this.#work.refuse(place === name ? `${name} //` : place, unreadable)
    return calls ? this.#take(tree, calls) : []
  }

  #take(tree: GrowingTree, { modules, otherSources, providers }: ModuleCalls): Step[] {
    for (const item of otherSources)
      this.#work.refuse(item, notMirrored('no registry serves it; clients fetch it themselves'))
    for (const { source, version } of providers) {
      const wanted = version === null ? undefined : parseWantedVersion(version, 'provider')
      tree.need(parseProviderAddressText(source), wanted)
    }
    return modules.flatMap(({ source, version }) => {
      const parsed = parseModuleSource(source)
      if (parsed.kind !== 'registry') return []
      const wanted = version === null ? LATEST : parseWantedVersion(version, 'module')
      return [{ tree, module: { address: parsed.address, subfolder: parsed.subfolder, wanted } }]
    })
  }

  /** Once, however many trees want it. */
  #bring(id: ModuleId): Promise<ModuleRecord | undefined> {
    const name = formatModuleName(id)
    const bringing = this.#brought.get(name) ?? this.#work.module(id)
    this.#brought.set(name, bringing)
    return bringing
  }
}

const tooDeep = { outcome: 'refused', reason: `it is called more than ${MAX_DEPTH} modules deep` } as const
const unreadable = { outcome: 'failed', reason: 'what it calls cannot be read from its files' } as const

/** A tree while it is walked. */
class GrowingTree {
  readonly #whole: boolean
  readonly #reached = new Set<string>()
  readonly #needs = new Map<string, { address: ProviderAddress; wanted: Map<string, WantedVersion> }>()

  constructor({ whole, providers }: ModuleTree) {
    this.#whole = whole
    for (const { address, wanted } of providers) this.need(address, wanted)
  }

  /** False if it was there before: modules may call each other in a circle. */
  reach(place: string): boolean {
    if (this.#reached.has(place)) return false
    this.#reached.add(place)
    return true
  }

  need(address: ProviderAddress, wanted: WantedVersion | undefined): void {
    const name = formatProviderAddress(address)
    const need = this.#needs.get(name) ?? { address, wanted: new Map<string, WantedVersion>() }
    if (wanted !== undefined) need.wanted.set(wanted.text, wanted)
    this.#needs.set(name, need)
  }

  walked(): WalkedTree {
    const needs = Array.from(this.#needs.values(), ({ address, wanted }) => ({ address, wanted: [...wanted.values()] }))
    return { whole: this.#whole, needs }
  }
}

/** As a module is named while no version is chosen. */
function nameOf({ address, wanted }: ModuleWish): string {
  return `${formatModuleAddress(address)} ${wanted.text}`
}
