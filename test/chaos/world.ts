import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { RequestKind } from '../origin/origin-request.ts'
import type { Publication } from '../origin/release.ts'
import {
  createContent,
  createSigners,
  isSigned,
  type Signers,
  type Signing,
  type Size,
  signedBy,
  verdictOf,
} from './edition.ts'
import { MachineWatch } from './machine-watch.ts'
import { nameAtOrigin, OriginTroubles } from './origin-troubles.ts'
import { beginPeriod, endPeriod, type Period, Timeline } from './timeline.ts'
import type { Recipe, Scope } from './trouble.ts'
import { type Content, type Edition, TrueProvider, type TrueVersion } from './truth.ts'
import { TwinWatch } from './twin-watch.ts'

/**
 * The truth: what the origin publishes and published, and what troubles it has and had. Everything that changes the
 * origin goes through here, so that the model knows as much as a witness would, and nothing of the mirror's inside.
 */
export class World implements AsyncDisposable {
  readonly timeline = new Timeline()
  readonly origin: TestOrigin
  readonly machine = new MachineWatch()
  readonly troubles: OriginTroubles
  readonly #seed: number
  readonly #signers: Signers
  readonly #providers = new Map<string, TrueProvider>()
  readonly #twins: TwinWatch
  #contents = 0

  private constructor(seed: number, origin: TestOrigin, signers: Signers) {
    this.#seed = seed
    this.origin = origin
    this.#signers = signers
    this.troubles = new OriginTroubles({ origin, timeline: this.timeline, machine: this.machine })
    this.#twins = new TwinWatch(origin, this.machine)
  }

  static async create(seed: number): Promise<World> {
    return new World(seed, await startOrigin(), await createSigners())
  }

  get hosts(): readonly string[] {
    return this.origin.hosts
  }

  get providers(): readonly TrueProvider[] {
    return [...this.#providers.values()]
  }

  /** Archives that were asked for twice at a time. */
  get twins(): readonly string[] {
    return this.#twins.found
  }

  /** How often the origin was asked for this archive, since its log was last forgotten. */
  archiveRequests({
    provider,
    version,
    platform,
  }: {
    provider: TrueProvider
    version?: TrueVersion | undefined
    platform?: string | undefined
  }): number {
    return this.origin.count(`archive ${nameAtOrigin(this.origin, provider.name)} ${version?.spelling} ${platform}`)
  }

  /** The provider of that name, `HOST/NAMESPACE/TYPE`; one that was never published is not remembered. */
  provider(name: string): TrueProvider {
    return this.#providers.get(name) ?? new TrueProvider(name)
  }

  /** Fresh bytes for all these platforms. They depend on the seed and the order of the calls only. */
  createContent(version: TrueVersion, platforms: readonly string[], size: Size): Promise<Content> {
    this.#contents += 1
    return createContent(`${version.name} #${this.#contents}`, { seed: this.#seed, platforms, size })
  }

  /** Publishes a version, or another edition of it. */
  async publish(
    version: TrueVersion,
    { content, platforms, signing }: { content: Content; platforms: readonly string[]; signing: Signing },
  ): Promise<void> {
    const { provider, spelling } = version
    this.#providers.set(provider.name, provider)
    const bad = signing === 'one bad shasum' ? platforms.slice(-1) : []
    const publication: Publication = {
      provider: provider.name,
      version: spelling,
      platforms,
      packages: this.#contents % 3 === 0,
      archive: (platform) => content.archives.get(platform)?.bytes ?? Buffer.alloc(0),
      ...signedBy(this.#signers, signing, bad),
    }
    const before = version.current
    const publish = () => this.origin.publish(publication)
    const verdict = bad.length === platforms.length ? 'refused' : verdictOf(signing, provider.host)
    const edition = { content, platforms, verdict, refusedPlatforms: bad, signed: isSigned(signing) }
    await beginPeriod(
      (period) => version.editions.push({ ...edition, period }),
      () => begin(provider.known, () => begin(version.listed, () => this.#change(version, before, publish))),
    )
  }

  /** Takes a version away. */
  async withdraw(version: TrueVersion): Promise<void> {
    const { current } = version
    if (current === undefined) return
    const listed = version.listed.at(-1)
    const name = version.provider.name
    const take = () => this.#change(version, current, () => this.origin.withdraw(name, version.spelling))
    await (listed === undefined ? take() : endPeriod(listed, take))
  }

  /** Takes a whole provider away. */
  async withdrawProvider(provider: TrueProvider): Promise<void> {
    for (const version of provider.versions.values()) await this.withdraw(version)
    const known = provider.known.at(-1)
    if (known !== undefined) await endPeriod(known, () => this.origin.withdraw(provider.name))
  }

  /** Makes requests of a scope suffer. */
  async addFault(recipe: Recipe, scope: Scope & { kinds: readonly RequestKind[] }): Promise<void> {
    await this.troubles.add(recipe, scope)
    this.#twins.renew()
  }

  /** Forgets the origin's log. Only while nothing is under way. Troubles stay: a clock that is set back meets them again. */
  forgetRequests(): void {
    this.origin.reset()
    this.#twins.renew()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.machine[Symbol.dispose]()
    await this.origin[Symbol.asyncDispose]()
  }

  /** Ends an edition. Documents and files of two may be seen mixed; that is refused, and asked again some time later. */
  async #change(version: TrueVersion, ended: Edition | undefined, change: () => unknown): Promise<void> {
    if (ended === undefined) {
      await change()
      return
    }
    const { provider, spelling } = version
    const kinds = ['download', 'sums', 'signature', 'archive'] as const
    const scope = { kinds, host: provider.host, provider: provider.name, version: spelling }
    const end = Number.POSITIVE_INFINITY
    const period = { from: performance.now(), certainFrom: end, certainTo: end, to: end }
    this.troubles.note({ ...scope, name: 'a change of the release', statuses: [502], period })
    await endPeriod(ended.period, change)
    period.to = performance.now()
  }
}

/** Begins a period with what `change` does, unless one lasts. */
async function begin(periods: Period[], change: () => Promise<void>): Promise<void> {
  if (periods.at(-1)?.to === Number.POSITIVE_INFINITY) await change()
  else await beginPeriod((period) => periods.push(period), change)
}
