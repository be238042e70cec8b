import type { Fault } from '../origin/fault.ts'
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
import { beginPeriod, endPeriod, type Span, Timeline, touches, without } from './timeline.ts'
import { type Effect, type Recipe, reaches, type Scope, type Trouble } from './trouble.ts'
import { type Content, type Edition, TrueProvider, type TrueVersion } from './truth.ts'
import { TwinWatch } from './twin-watch.ts'

/** How long an incomplete release and a 404 are believed, and a list used without asking (the mirror's defaults). */
export const BELIEF_MS = 30_000
export const LIST_MS = 300_000
/** A request to the origin that was under way when a trouble ended is over after this long. */
const SLACK_MS = 4_000

interface ActiveFault {
  readonly fault: Fault
  readonly trouble: Trouble | undefined
  readonly transient: boolean
}

/**
 * The truth: what the origin publishes and published, and what troubles it has and had. Everything that changes the
 * origin goes through here, so that the model knows as much as a witness would, and nothing of the mirror's inside.
 */
export class World implements AsyncDisposable {
  readonly timeline = new Timeline()
  readonly origin: TestOrigin
  readonly #seed: number
  readonly #signers: Signers
  readonly #providers = new Map<string, TrueProvider>()
  readonly #faults: ActiveFault[] = []
  readonly #troubles: Trouble[] = []
  #stopped: Trouble | undefined
  #contents = 0
  #watch: Fault | undefined
  readonly #twins: TwinWatch

  private constructor(seed: number, origin: TestOrigin, signers: Signers) {
    this.#seed = seed
    this.origin = origin
    this.#signers = signers
    this.#twins = new TwinWatch(origin)
    this.#renewWatch()
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

  /** True while the origin refuses connections. */
  get stopped(): boolean {
    return this.#stopped !== undefined
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
    return this.origin.count(`archive ${this.#shorten(provider.name)} ${version?.spelling} ${platform}`)
  }

  get faultCount(): number {
    return this.#faults.length
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
  ): Promise<Edition> {
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
    const period = await beginPeriod(() => (before === undefined ? publish() : endPeriod(before.period, publish)))
    if (provider.known.at(-1)?.to !== Number.POSITIVE_INFINITY) provider.known.push({ ...period })
    if (version.listed.at(-1)?.to !== Number.POSITIVE_INFINITY) version.listed.push({ ...period })
    if (before !== undefined) this.#noteChange(version, before)
    const edition: Edition = {
      content,
      platforms,
      verdict: bad.length === platforms.length ? 'refused' : verdictOf(signing, provider.host),
      refusedPlatforms: bad,
      signed: isSigned(signing),
      period,
    }
    version.editions.push(edition)
    return edition
  }

  /** Takes a version away. */
  async withdraw(version: TrueVersion): Promise<void> {
    const { current } = version
    if (current === undefined) return
    const listed = version.listed.at(-1)
    const name = version.provider.name
    await endPeriod(current.period, () => this.origin.withdraw(name, version.spelling))
    if (listed !== undefined) Object.assign(listed, { certainTo: current.period.certainTo, to: current.period.to })
    this.#noteChange(version, current)
  }

  /** Takes a whole provider away. */
  async withdrawProvider(provider: TrueProvider): Promise<void> {
    for (const version of provider.versions.values()) await this.withdraw(version)
    const known = provider.known.at(-1)
    if (known !== undefined) await endPeriod(known, () => this.origin.withdraw(provider.name))
  }

  /** Makes requests of a scope suffer. Of faults that strike once, only the newest is in force. */
  async addFault(recipe: Recipe, scope: Scope & { kinds: readonly RequestKind[] }): Promise<void> {
    const transient = recipe.times === 1 && recipe.effect === undefined
    if (transient) await this.#clearFaults(({ transient }) => transient)
    const { kinds, host, provider, version, platform } = scope
    const matcher = {
      kind: kinds,
      ...(host === undefined ? {} : { host }),
      ...(provider === undefined ? {} : { provider: this.#shorten(provider) }),
      ...(version === undefined ? {} : { version }),
      ...(platform === undefined ? {} : { platform }),
      ...(recipe.times === undefined ? {} : { times: recipe.times }),
      ...(recipe.when === undefined ? {} : { when: recipe.when }),
    }
    let fault: Fault | undefined
    const period = await beginPeriod(() => {
      fault = this.origin.fault(matcher, recipe.behaviour)
    })
    this.#renewWatch()
    const effect = mergeEffects(kinds.flatMap((kind) => recipe.effect?.(kind) ?? []))
    const trouble = effect && { ...scope, ...effect, name: recipe.name, period }
    // A few strikes keep nobody from an honest answer.
    if (recipe.times !== undefined) delete trouble?.blocks
    if (trouble !== undefined) this.#troubles.push(trouble)
    if (fault !== undefined) this.#faults.push({ fault, trouble, transient })
  }

  /** Ends the fault that has been in force for the longest time. */
  async clearOldestFault(): Promise<void> {
    const oldest = this.#faults[0]
    await this.#clearFaults((active) => active === oldest)
  }

  async clearAllFaults(): Promise<void> {
    await this.#clearFaults(() => true)
  }

  /** Refuses connections until `startOrigin`. */
  async stopOrigin(): Promise<void> {
    if (this.#stopped !== undefined) return
    const period = await beginPeriod(() => this.origin.stop())
    this.#stopped = { name: 'the origin is stopped', statuses: [502, 504], blocks: true, period }
    this.#troubles.push(this.#stopped)
  }

  async startOrigin(): Promise<void> {
    if (this.#stopped === undefined) return
    await endPeriod(this.#stopped.period, () => this.origin.start())
    this.#stopped = undefined
  }

  /** Troubles that requests of this scope, asked during `span`, may still feel. */
  troublesFor(scope: Scope, span: Span): Trouble[] {
    return this.#troubles.filter((trouble) => {
      if (!reaches(trouble, scope)) return false
      const { period, memoryMs = BELIEF_MS, slackMs = SLACK_MS } = trouble
      return touches({ from: period.from, to: period.to + slackMs }, this.timeline.learnt(span, memoryMs))
    })
  }

  /** The moments of the spans at which the origin could give an honest answer to requests of this scope. */
  answering(scope: Scope, spans: readonly Span[]): Span[] {
    const blocking = this.#troubles.filter((trouble) => trouble.blocks === true && reaches(trouble, scope))
    return without(
      spans,
      blocking.map(({ period }) => period),
    )
  }

  /** Forgets the origin's log. Only while nothing is under way. Troubles stay: a clock that is set back meets them again. */
  forgetRequests(): void {
    this.origin.reset()
    this.#renewWatch()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.origin[Symbol.asyncDispose]()
  }

  async #clearFaults(which: (active: ActiveFault) => boolean): Promise<void> {
    for (const active of this.#faults.filter(which)) {
      this.#faults.splice(this.#faults.indexOf(active), 1)
      if (active.trouble === undefined) active.fault.clear()
      else await endPeriod(active.trouble.period, () => active.fault.clear())
    }
  }

  /** Documents and files of two editions may be seen mixed; that is refused, and asked again some time later. */
  #noteChange({ provider, spelling }: TrueVersion, { period: { certainTo, to } }: Edition): void {
    const kinds = ['download', 'sums', 'signature', 'archive'] as const
    const period = { from: certainTo, certainFrom: certainTo, certainTo: to, to }
    const scope = { kinds, host: provider.host, provider: provider.name, version: spelling }
    this.#troubles.push({ ...scope, name: 'a change of the release', statuses: [502], period })
  }

  /** The newest fault is asked first: this one sees every request, and strikes none. */
  #renewWatch(): void {
    this.#watch?.clear()
    this.#watch = this.origin.fault({ kind: 'archive', when: (request) => this.#twins.watch(request) }, {})
  }

  /** As the origin's matchers want it. */
  #shorten(provider: string): string {
    const prefix = `${this.hosts[0]}/`
    return provider.startsWith(prefix) ? provider.slice(prefix.length) : provider
  }
}

function mergeEffects(effects: readonly Effect[]): { -readonly [K in keyof Effect]: Effect[K] } | undefined {
  if (effects.length === 0) return undefined
  return Object.assign({}, ...effects, { statuses: [...new Set(effects.flatMap(({ statuses }) => statuses))] })
}
