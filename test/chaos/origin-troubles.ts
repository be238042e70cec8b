import type { Fault } from '../origin/fault.ts'
import type { TestOrigin } from '../origin/origin.ts'
import type { RequestKind } from '../origin/origin-request.ts'
import type { MachineWatch } from './machine-watch.ts'
import { beginPeriod, endPeriod, type Period, type Span, type Timeline, touches, without } from './timeline.ts'
import { type Effect, type Recipe, reaches, type Scope, strikes, type Trouble } from './trouble.ts'

/** How long an incomplete release and a 404 are believed (the mirror's defaults). */
export const BELIEF_MS = 30_000
/** A request to the origin that was under way when a trouble ended is over after this long. */
const SLACK_MS = 4_000
/** One that the machine held up goes on until its own limit. */
const BUSY_SLACK_MS = 9_000

interface ActiveFault {
  readonly fault: Fault
  readonly trouble: Trouble | undefined
  readonly transient: boolean
}

/** What troubles the origin, and has troubled it. Everything that does goes through here. */
export class OriginTroubles {
  readonly #origin: TestOrigin
  readonly #timeline: Timeline
  readonly #machine: MachineWatch
  readonly #faults: ActiveFault[] = []
  readonly #all: Trouble[] = []
  #stopped: Trouble | undefined

  constructor(parts: { origin: TestOrigin; timeline: Timeline; machine: MachineWatch }) {
    this.#origin = parts.origin
    this.#timeline = parts.timeline
    this.#machine = parts.machine
  }

  /** Faults in force. */
  get count(): number {
    return this.#faults.length
  }

  /** Makes requests of a scope suffer. Of faults that strike once, only the newest is in force. */
  async add(recipe: Recipe, scope: Scope & { kinds: readonly RequestKind[] }): Promise<void> {
    const transient = recipe.times === 1 && recipe.effect === undefined
    if (transient) await this.#clear(({ transient }) => transient)
    const { kinds, host, provider, version, platform } = scope
    const matcher = {
      kind: kinds,
      ...(host === undefined ? {} : { host }),
      ...(provider === undefined ? {} : { provider: nameAtOrigin(this.#origin, provider) }),
      ...(version === undefined ? {} : { version }),
      ...(platform === undefined ? {} : { platform }),
      ...(recipe.times === undefined ? {} : { times: recipe.times }),
      ...(recipe.when === undefined ? {} : { when: recipe.when }),
    }
    const effect = mergeEffects(kinds.flatMap((kind) => recipe.effect?.(kind) ?? []))
    // A few strikes keep nobody from an honest answer.
    if (recipe.times !== undefined) delete effect?.blocks
    let trouble: Trouble | undefined
    const note = (period: Period): void => {
      if (effect === undefined) return
      trouble = { ...scope, ...effect, name: recipe.name, period }
      this.#all.push(trouble)
    }
    await beginPeriod(note, () => {
      this.#faults.push({ fault: this.#origin.fault(matcher, recipe.behaviour), trouble, transient })
    })
  }

  /** Notes a trouble that nobody can end. */
  note(trouble: Trouble): void {
    this.#all.push(trouble)
  }

  /** Ends the fault that has been in force for the longest time. */
  async clearOldest(): Promise<void> {
    const oldest = this.#faults[0]
    await this.#clear((active) => active === oldest)
  }

  /** Ends all of them; a stopped origin stays stopped. */
  async clearAll(): Promise<void> {
    await this.#clear(() => true)
  }

  /** Refuses connections until `startOrigin`. */
  async stopOrigin(): Promise<void> {
    if (this.#stopped !== undefined) return
    const note = (period: Period): void => {
      this.#stopped = { name: 'the origin is stopped', statuses: [502, 504], blocks: true, period }
      this.#all.push(this.#stopped)
    }
    await beginPeriod(note, () => this.#origin.stop())
  }

  async startOrigin(): Promise<void> {
    if (this.#stopped === undefined) return
    await endPeriod(this.#stopped.period, () => this.#origin.start())
    this.#stopped = undefined
  }

  /** Troubles that requests of this scope, asked during `span`, may still feel. */
  for(scope: Scope, span: Span): Trouble[] {
    const busy = this.#machine.busySpans().map((stretch) => busyTrouble(stretch))
    return [...this.#all, ...busy].filter((trouble) => {
      if (!reaches(trouble, scope)) return false
      const { period, memoryMs = BELIEF_MS, slackMs = SLACK_MS } = trouble
      return touches({ from: period.from, to: period.to + slackMs }, this.#timeline.learnt(span, memoryMs))
    })
  }

  /** The moments of the spans at which the origin could give an honest answer to requests of this scope. */
  answering(scope: Scope, spans: readonly Span[]): Span[] {
    // A limit may not have been noticed yet: it is certain to stop only what it strikes.
    const blocking = this.#all.filter((trouble) => trouble.blocks === true && strikes(trouble, scope))
    return without(
      spans,
      blocking.map(({ period }) => period),
    )
  }

  async #clear(which: (active: ActiveFault) => boolean): Promise<void> {
    for (const active of this.#faults.filter(which)) {
      this.#faults.splice(this.#faults.indexOf(active), 1)
      if (active.trouble === undefined) active.fault.clear()
      else await endPeriod(active.trouble.period, () => active.fault.clear())
    }
  }
}

/** `HOST/NAMESPACE/TYPE` as the origin's matchers and counts have it: its first host goes without saying. */
export function nameAtOrigin({ hosts }: TestOrigin, provider: string): string {
  const prefix = `${hosts[0]}/`
  return provider.startsWith(prefix) ? provider.slice(prefix.length) : provider
}

/** Nobody misbehaves, and yet an answer may come too late. It never explains a word that was not said. */
function busyTrouble({ from, to }: Span): Trouble {
  const period = { from, certainFrom: from, certainTo: to, to }
  return { name: 'the machine is busy', statuses: [504], slackMs: BUSY_SLACK_MS, period }
}

function mergeEffects(effects: readonly Effect[]): { -readonly [K in keyof Effect]: Effect[K] } | undefined {
  if (effects.length === 0) return undefined
  return Object.assign({}, ...effects, { statuses: [...new Set(effects.flatMap(({ statuses }) => statuses))] })
}
