import type { Answer } from './client.ts'
import type { Knowledge } from './knowledge.ts'
import type { Circumstances } from './mirror-history.ts'
import { BELIEF_MS } from './origin-troubles.ts'
import { isZip, type Question, scopeOf } from './question.ts'
import type { Span } from './timeline.ts'
import type { Scope, Trouble } from './trouble.ts'
import type { World } from './world.ts'

/** A list is used without asking for this long (the mirror's default). */
const LIST_MS = 300_000
/** Held things are answered without the origin after this long (1.5 s, less what timers are early). */
const GRACE_MS = 1_400
/** Two refreshes because of an unknown version are at least this far apart. */
const FORCED_MS = 5_000
/** A request to an origin ends after this long, whatever it does. */
const FLIGHT_MS = 9_000

/** What truth and troubles of the time explain: the open ends of the status table, for one question each. */
export class Reasons {
  readonly #world: World
  readonly #knowledge: Knowledge

  constructor(world: World, knowledge: Knowledge) {
    this.#world = world
    this.#knowledge = knowledge
  }

  /** Statuses of failure that something explains, for what is not held. */
  failures(question: Question, span: Span, met: Circumstances): Set<number> {
    const { route, version } = question
    const allowed = new Set(this.#troubles(question, span).flatMap(({ statuses }) => statuses))
    if (span.to - span.from > GRACE_MS) allowed.add(504)
    if (route === 'index' || version === undefined) return allowed
    if (route === 'archive' && met.unwritable) for (const status of [500, 507]) allowed.add(status)
    for (const edition of version.during(this.#learnt({ from: span.from - FLIGHT_MS, to: span.to }, LIST_MS))) {
      const refused = edition.verdict === 'refused' || edition.refusedPlatforms.includes(question.platform ?? '')
      const untrusted = edition.verdict === 'unsigned' && (!isZip(edition) || version.provider.mayBeTrusted(span.to))
      if (refused || untrusted) allowed.add(502)
    }
    // What the mirror knows of the release need not be what the origin has now.
    const changed = version.editions.length > 1 || (version.editions.length === 1 && version.current === undefined)
    if (changed && (route === 'archive' || this.#knowledge.mayLackRelease(version))) allowed.add(502)
    return allowed
  }

  /** True if "not there" may be the word of the origin, as far as the mirror has heard and still believes it. */
  mayBeAbsent(question: Question, span: Span): boolean {
    const { route, provider, version, platform } = question
    if (this.#troubles(question, span).some(({ tellsAbsence, garbles }) => tellsAbsence || garbles)) return true
    if (provider.mayBeUnknown(this.#answered(question, span, BELIEF_MS))) return true
    if (route === 'index') return false
    const scope: Scope = { ...scopeOf(question), kinds: ['discovery', 'versions'] }
    const refreshed = this.#world.troubles.for(scope, span).length === 0
    if (version === undefined) return true
    if (version.mayBeUnlisted(this.#answered(question, span, refreshed ? FORCED_MS : LIST_MS))) return true
    // While its list cannot be asked, the 404 of every document of a version that was withdrawn is its word.
    if (version.mayBeGone(this.#answered(question, span, BELIEF_MS, 'download'))) return true
    return platform !== undefined && version.editions.some(({ platforms }) => !platforms.includes(platform))
  }

  /** True if the origin may have said, since the mirror had a list, that the provider is gone, or there was no list. */
  mayLackList(question: Question, span: Span): boolean {
    const { provider } = question
    const since = this.#knowledge.listedSince(provider)
    if (since >= span.from) return true
    const all = { from: since, to: span.to }
    return provider.mayBeUnknown([all]) || this.#troubles(question, all).some(({ tellsAbsence }) => tellsAbsence)
  }

  /** True if the mirror may have had to answer without the word of the origin. */
  mayBeStale(question: Question, span: Span): boolean {
    if (span.to - span.from > GRACE_MS) return true
    const { version, route } = question
    // A pinned release is checked behind the answers: each tells of the check before, however long ago that was.
    const always = route === 'document' ? { from: 0, to: span.to } : undefined
    if (this.#troubles({ ...question, platform: undefined }, always ?? span).length > 0) return true
    if (question.provider.mayBeUnknown(always ? [always] : this.#learnt(span, BELIEF_MS))) return true
    if (version === undefined) return false
    const learnt = always ? [always] : this.#learnt(span, LIST_MS + BELIEF_MS)
    return version.mayBeUnlisted(learnt) || version.during(learnt).some(({ verdict }) => verdict !== 'accepted')
  }

  /** When the list behind an index may have been fetched. */
  listSeen(question: Question, { headers, span }: Answer): Span[] {
    switch (headers['terramirror-cache']) {
      case 'miss':
        return [span]
      case 'coalesced':
        return [{ from: span.from - FLIGHT_MS, to: span.to }]
      case 'hit':
        return this.#learnt(span, LIST_MS).map(({ from, to }) => ({ from, to: Math.min(span.to, to + FLIGHT_MS) }))
      default:
        return [
          { from: this.mayLackList(question, span) ? 0 : this.#knowledge.listedSince(question.provider), to: span.to },
        ]
    }
  }

  /** True if entries of the list may have been unreadable. */
  mayBeGarbled(question: Question, span: Span): boolean {
    return this.#troubles(question, span).some(({ garbles }) => garbles)
  }

  /** Platforms that a document must have, because nothing is in the way and nothing was ever changed. */
  platformsDue(question: Question, span: Span): string[] {
    const { version } = question
    if (version === undefined) return []
    const [edition, ...others] = version.editions
    if (edition === undefined || others.length > 0 || edition.verdict !== 'accepted') return []
    if (version.current !== edition || edition.period.certainFrom > span.from - FLIGHT_MS) return []
    if (version.mayBeUnlisted(this.#learnt(span, 2 * LIST_MS))) return []
    if (this.#troubles({ ...question, platform: undefined }, span).length > 0) return []
    return edition.platforms.filter((platform) => !edition.refusedPlatforms.includes(platform))
  }

  /** Moments of what may still be believed at which the origin could be asked for its list, or its documents. */
  #answered(question: Question, span: Span, limitMs: number, kind: 'versions' | 'download' = 'versions'): Span[] {
    const learnt = this.#learnt(span, limitMs).map(({ from, to }) => ({ from: from - FLIGHT_MS, to }))
    return this.#world.troubles.answering({ ...scopeOf(question), kinds: [kind] }, learnt)
  }

  #learnt(span: Span, limitMs: number): Span[] {
    return this.#world.timeline.learnt(span, limitMs)
  }

  #troubles(question: Question, span: Span): Trouble[] {
    return this.#world.troubles.for(scopeOf(question), span)
  }
}
