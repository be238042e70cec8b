import { createHash } from 'node:crypto'
import type { ChaosMirror, Circumstances } from './chaos-mirror.ts'
import type { Answer } from './client.ts'
import type { Knowledge } from './knowledge.ts'
import type { Span } from './timeline.ts'
import type { Scope } from './trouble.ts'
import type { Content, Edition, TrueProvider, TrueVersion } from './truth.ts'
import { BELIEF_MS, LIST_MS, type World } from './world.ts'

/** Something that a mirror must never answer. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/** What was asked, in terms of the truth. */
export interface Question {
  readonly route: 'index' | 'document' | 'archive'
  readonly provider: TrueProvider
  /** The mirror may not serve this host. */
  readonly foreign: boolean
  readonly version: TrueVersion | undefined
  readonly platform: string | undefined
}

/** Documents come within 8 s; the rest is for a busy machine. */
const MAX_DOCUMENT_MS = 13_000
/** Held things are answered without the origin after this long. */
const GRACE_MS = 1_400
/** Two refreshes because of an unknown version are at least this far apart. */
const FORCED_MS = 5_000
/** A request to an origin ends after this long, whatever it does. */
const FLIGHT_MS = 9_000

const KINDS = {
  index: ['discovery', 'versions'],
  document: ['discovery', 'versions', 'download', 'sums', 'signature'],
  archive: ['discovery', 'versions', 'download', 'sums', 'signature', 'archive'],
} as const

/**
 * Holds answers against the status table of the design (section 3) and bytes against the truth, knowing only what a
 * witness of the origin and of all answers knows. Where the design or the timing leave several answers open, all of
 * them are allowed, and nothing else.
 */
export class Judge {
  readonly #world: World
  readonly #knowledge: Knowledge
  readonly #mirror: ChaosMirror

  constructor(parts: { world: World; knowledge: Knowledge; mirror: ChaosMirror }) {
    this.#world = parts.world
    this.#knowledge = parts.knowledge
    this.#mirror = parts.mirror
  }

  /** Judges any answer, and learns from it. @throws Violation */
  judge(question: Question, answer: Answer, head = false): void {
    const met = this.#mirror.circumstances(answer.span)
    const tookMs = answer.span.to - answer.span.from
    if (answer.left) {
      this.#judgePart(question, answer)
      return
    }
    if (answer.trouble !== undefined) {
      this.#judgeBroken(question, answer, met)
      return
    }
    if (question.route !== 'archive' && tookMs > MAX_DOCUMENT_MS) throw new Violation(`it took ${tookMs} ms`)
    if (answer.status !== 200 && answer.status !== 206) {
      if (head) this.#judgeStatus(question, answer, met)
      else this.#judgeFailure(question, answer, met)
    } else if (question.route === 'index') this.#judgeIndex(question, answer, met)
    else if (question.route === 'document') this.#judgeDocument(question, answer, met)
    else if (head) this.#judgeHead(question, answer)
    else this.#judgeArchive(question, answer)
  }

  #judgeBroken({ route }: Question, { trouble, status }: Answer, met: Circumstances): void {
    if (met.disturbed || (route === 'archive' && status !== 0 && met.unreadable)) return
    throw new Violation(`the connection broke: ${trouble}`)
  }

  #judgeIndex(question: Question, answer: Answer, met: Circumstances): void {
    const { provider } = question
    const { versions } = parse(answer)
    if (!isRecord(versions) || Object.values(versions).some((value) => !isEmptyRecord(value))) {
      throw new Violation('index.json is not { "versions": { VERSION: {} } }')
    }
    this.#assertNotForeign(question)
    this.#assertOutcome(question, answer, met)
    const seen = this.#listSeen(answer)
    for (const version of Object.keys(versions)) {
      const truth = provider.versions.get(version)
      if (truth === undefined) throw new Violation(`the origin never listed ${version}`)
      const listed = truth.listed.some(({ from, to }) => seen.some((span) => from <= span.to && span.from <= to))
      if (!listed && !this.#knowledge.wasAsked(truth)) throw new Violation(`${version} was not listed at that time`)
      if (met.sealed && !met.disturbed && !this.#knowledge.wasAsked(truth))
        throw new Violation(`${version} is not held`)
    }
    const garbled = this.#troubles(question, answer.span).some(({ garbles }) => garbles)
    for (const truth of provider.versions.values()) {
      if (truth.version in versions) continue
      if (this.#knowledge.recorded(truth, answer.span.from).size > 0)
        throw new Violation(`${truth.version} is held, and left out`)
      if (met.sealed || met.disturbed || garbled) continue
      if (!truth.mayBeUnlisted(seen)) throw new Violation(`${truth.version} was listed all that time, and is left out`)
    }
  }

  #judgeDocument(question: Question, answer: Answer, met: Circumstances): void {
    const { version } = question
    const { archives } = parse(answer)
    if (!isRecord(archives)) throw new Violation('VERSION.json is not { "archives": { … } }')
    if (Object.keys(archives).length === 0) {
      this.#assertMayBeAbsent(question, answer, met)
      return
    }
    this.#assertNotForeign(question)
    this.#assertOutcome(question, answer, met)
    const hashes = new Map(Object.entries(archives).map(([platform, entry]) => [platform, readEntry(platform, entry)]))
    if (version === undefined) throw new Violation('archives of something that is no version')
    for (const [platform, { url }] of hashes) assertLink(url, version, platform)
    const content = this.#findContent(version, hashes, { span: answer.span, asArchive: false })
    for (const [platform, { h1 }] of hashes) {
      const truth = content.archives.get(platform)?.h1
      if (h1.length > 1 || (h1[0] !== undefined && h1[0] !== truth)) {
        throw new Violation(`${platform} has ${h1.join(', ')}, and the archive has ${truth}`)
      }
    }
    for (const [platform, { digest }] of this.#knowledge.recorded(version, answer.span.from)) {
      if (this.#knowledge.mayLackRelease(version)) continue
      if (hashes.get(platform)?.digest !== digest) throw new Violation(`${platform} is held, and not listed so`)
    }
    if (!met.sealed && !met.disturbed) this.#assertNothingLeftOut(question, answer, new Set(hashes.keys()))
    const signed = version.editions.some((edition) => edition.content === content && edition.signed)
    const unsigned = version.editions.some((edition) => edition.content === content && !edition.signed)
    const fresh = answer.headers['terramirror-cache'] === 'miss' && !met.unwritable && !met.disturbed
    if (signed && !unsigned && fresh) this.#knowledge.noteSigned(version.provider, this.#mirror.life)
    if (fresh) this.#knowledge.noteDocument(version, this.#mirror.life)
  }

  #judgeArchive(question: Question, answer: Answer): void {
    const { status, headers, body } = answer
    const { version, platform } = this.#servable(question)
    const content = this.#contentOf(question, answer)
    const archive = content.archives.get(platform)
    if (archive === undefined) throw new Violation(`there is no archive for ${platform}`)
    const [start, end] = status === 200 ? [0, archive.bytes.length] : rangeOf(headers['content-range'], archive.bytes)
    if (headers['content-length'] !== String(end - start)) {
      throw new Violation(`Content-Length is ${headers['content-length']} for ${end - start} bytes`)
    }
    if (!archive.bytes.subarray(start, end).equals(body)) {
      const digest = createHash('sha256').update(body).digest('hex')
      throw new Violation(
        `WRONG BYTES: ${body.length} bytes with SHA-256 ${digest} as ${start}-${end} of ${archive.digest}`,
      )
    }
    this.#knowledge.noteReceived(version, { platform, content, life: this.#mirror.life })
  }

  #judgeHead(question: Question, answer: Answer): void {
    const { headers, body } = answer
    const { version, platform } = this.#servable(question)
    const archive = this.#contentOf(question, answer).archives.get(platform)
    const length = headers['content-length']
    if (body.length > 0) throw new Violation('an answer to HEAD has a body')
    if (length !== undefined && length !== String(archive?.bytes.length))
      throw new Violation(`Content-Length ${length}`)
    if (length === undefined && this.#knowledge.held(version, platform, answer.span.from)) {
      throw new Violation('held, and without length')
    }
    if ((length === undefined) !== (headers['accept-ranges'] === undefined)) {
      throw new Violation('Accept-Ranges goes with Content-Length, and with nothing else')
    }
  }

  /** A client that left has received the beginning of the right bytes, or nothing. */
  #judgePart(question: Question, answer: Answer): void {
    const { platform = '' } = question
    if (question.route !== 'archive' || answer.status !== 200 || answer.body.length === 0) return
    const archive = this.#contentOf(question, answer).archives.get(platform)
    if (archive?.bytes.subarray(0, answer.body.length).equals(answer.body) !== true) {
      throw new Violation(`WRONG BYTES: ${answer.body.length} bytes are not the beginning of ${archive?.digest}`)
    }
  }

  /** The content that an archive's ETag names, which the mirror may serve. */
  #contentOf(question: Question, answer: Answer): Content {
    const { version, platform } = this.#servable(question)
    const digest = /^"([0-9a-f]{64})"$/.exec(answer.headers.etag ?? '')?.[1]
    if (digest === undefined) throw new Violation(`the ETag is ${answer.headers.etag}`)
    return this.#findContent(version, new Map([[platform, { digest }]]), { span: answer.span, asArchive: true })
  }

  #servable(question: Question): { version: TrueVersion; platform: string } {
    this.#assertNotForeign(question)
    const { version, platform } = question
    if (version === undefined || platform === undefined) throw new Violation('an archive of something that is none')
    return { version, platform }
  }

  /** The one content that all these digests belong to, published and acceptable at the time, and the pinned one. */
  #findContent(
    version: TrueVersion,
    found: ReadonlyMap<string, { digest: string }>,
    { span, asArchive }: { span: Span; asArchive: boolean },
  ): Content {
    const editions = version.editions.filter((edition) => this.#mayAccept(version, edition, span.to))
    const fitting = editions.find(({ content }) =>
      [...found].every(
        ([platform, { digest }]) =>
          content.archives.get(platform)?.digest === digest &&
          editions.some(
            (each) =>
              each.content === content &&
              each.platforms.includes(platform) &&
              !each.refusedPlatforms.includes(platform),
          ),
      ),
    )
    if (fitting === undefined) {
      const digests = [...found].map(([platform, { digest }]) => `${platform} ${digest}`)
      throw new Violation(`no acceptable edition of ${version.name} has all of ${digests.join(', ')}`)
    }
    // Who serves an archive has pinned it: of two contents one is wrong, whoever asked first.
    const pinned = this.#knowledge.pinned(version, asArchive ? undefined : span.from)
    if (pinned !== undefined && pinned !== fitting.content) {
      throw new Violation(`${version.name} is pinned to ${pinned.name}, and this is ${fitting.content.name}`)
    }
    return fitting.content
  }

  #mayAccept(version: TrueVersion, edition: Edition, moment: number): boolean {
    if (edition.period.from > moment) return false
    if (edition.verdict === 'unsigned') return this.#knowledge.mayAcceptUnsigned(version, edition, moment)
    return edition.verdict === 'accepted'
  }

  /** When nothing was in the way and nothing has changed, all platforms are there. */
  #assertNothingLeftOut(question: Question, { span, headers }: Answer, platforms: ReadonlySet<string>): void {
    const { version } = question
    if (version === undefined || headers['terramirror-cache'] === 'stale') return
    const [edition, ...others] = version.during(this.#world.timeline.learnt(span, 2 * LIST_MS))
    if (edition === undefined || others.length > 0 || edition.period.from > span.from - FLIGHT_MS) return
    if (version.editions.some((each) => each.content !== edition.content)) return
    if (version.editions[0] !== edition || edition.verdict !== 'accepted') return
    if (this.#troubles({ ...question, platform: undefined }, span).length > 0) return
    for (const platform of edition.platforms) {
      if (platforms.has(platform) || edition.refusedPlatforms.includes(platform)) continue
      throw new Violation(`${platform} is published, and left out`)
    }
  }

  #judgeFailure(question: Question, answer: Answer, met: Circumstances): void {
    const { status, headers } = answer
    if (status === 304 || status === 416) return
    const { error, code, request_id: requestId, upstream_url: upstreamUrl = '' } = parse(answer)
    if (
      typeof error !== 'string' ||
      error === '' ||
      typeof code !== 'string' ||
      requestId !== headers['x-request-id']
    ) {
      throw new Violation(`the body of a ${status} does not say what is wrong`)
    }
    if (code === 'UNEXPECTED') throw new Violation('an unexpected error')
    if (/[?#@]/.test(String(upstreamUrl))) throw new Violation(`upstream_url is ${upstreamUrl}`)
    this.#judgeStatus(question, answer, met)
  }

  #judgeStatus(question: Question, answer: Answer, met: Circumstances): void {
    const { status, headers, span } = answer
    if (status === 304 || status === 416) return
    if (status === 503 && !/^[123]$/.test(headers['retry-after'] ?? '')) {
      throw new Violation(`Retry-After is ${headers['retry-after']}`)
    }
    if (status === 404 && question.route !== 'document') {
      this.#assertMayBeAbsent(question, answer, met)
      return
    }
    if (met.unreadable && status === 500) return
    if (met.disturbed && status === 503) return
    if (question.foreign) throw new Violation(`a host that is not served got ${status}`)
    if (met.sealed && !met.disturbed) throw new Violation(`a sealed mirror answered ${status}`)
    this.#assertNotHeld(question, span)
    if (!this.#failuresOf(question, span, met).has(status)) throw new Violation(`${status} without a reason`)
  }

  /** Statuses of failure that the troubles of the time explain. */
  #failuresOf(question: Question, span: Span, met: Circumstances): Set<number> {
    const { route, version } = question
    const allowed = new Set(this.#troubles(question, span).flatMap(({ statuses }) => statuses))
    if (span.to - span.from > GRACE_MS) allowed.add(504)
    if (route === 'index') return allowed
    if (route === 'archive' && met.unwritable) for (const status of [500, 507]) allowed.add(status)
    const editions = version?.during(this.#world.timeline.learnt({ from: span.from - FLIGHT_MS, to: span.to }, LIST_MS))
    for (const edition of editions ?? []) {
      if (version === undefined) break
      const refused = edition.verdict === 'refused' || edition.refusedPlatforms.includes(question.platform ?? '')
      const untrusted = edition.verdict === 'unsigned' && version.provider.mayBeTrusted(span.to)
      if (refused || untrusted) allowed.add(502)
    }
    // What the mirror knows of the release need not be what the origin has now.
    if (version !== undefined && version.editions.length > 0 && (version.editions.length > 1 || !version.current)) {
      if (route === 'archive' || this.#knowledge.mayLackRelease(version)) allowed.add(502)
    }
    return allowed
  }

  /** What a client has once received is not refused any more. */
  #assertNotHeld({ route, provider, version, platform }: Question, { from }: Span): void {
    const held = [...provider.versions.values()].filter((each) => this.#knowledge.recorded(each, from).size > 0)
    if (route === 'index' && held.length > 0) throw new Violation(`${held[0]?.version} is held`)
    if (version === undefined) return
    const documented = held.includes(version) && !this.#knowledge.mayLackRelease(version)
    if (route === 'document' && documented) throw new Violation('the release is held')
    if (platform !== undefined && this.#knowledge.held(version, platform, from)) {
      throw new Violation('the archive is held')
    }
  }

  /** @throws Violation if "not there" cannot be the word of the origin */
  #assertMayBeAbsent(question: Question, { span }: Answer, met: Circumstances): void {
    const { route, provider, version, platform } = question
    if (question.foreign || (route !== 'index' && version === undefined)) return
    this.#assertNotHeld(question, span)
    if (met.sealed || met.disturbed) return
    const { timeline } = this.#world
    const scope = this.#scope(question)
    if (this.#troubles(question, span).some(({ tellsAbsence, garbles }) => tellsAbsence || garbles)) return
    const listScope: Scope = { ...scope, kinds: ['versions'] }
    const answered = (limitMs: number): Span[] =>
      this.#world.answering(
        listScope,
        timeline.learnt(span, limitMs).map(({ from, to }) => ({ from: from - FLIGHT_MS, to })),
      )
    if (provider.mayBeUnknown(answered(BELIEF_MS))) return
    if (route !== 'index') {
      const troubled = this.#world.troublesFor({ ...scope, kinds: ['discovery', 'versions'] }, span).length > 0
      if (version === undefined || version.mayBeUnlisted(answered(troubled ? LIST_MS : FORCED_MS))) return
      const lacks = version.editions.some(({ platforms }) => platform !== undefined && !platforms.includes(platform))
      if (lacks || (platform !== undefined && version.editions.length === 0)) return
    }
    throw new Violation('told as absent, and the origin never said so')
  }

  #assertNotForeign(question: Question): void {
    if (question.foreign) throw new Violation('a host that is not served got an answer')
  }

  /** Stale answers have a reason. */
  #assertOutcome(question: Question, { headers, span }: Answer, met: Circumstances): void {
    const outcome = String(headers['terramirror-cache'])
    if (!['hit', 'miss', 'coalesced', 'stale', 'negative'].includes(outcome)) throw new Violation(`outcome ${outcome}`)
    if (outcome !== 'stale' || met.disturbed || span.to - span.from > GRACE_MS) return
    const { timeline } = this.#world
    // A pinned release is checked behind the answers: each tells of the check before, however long ago that was.
    const always = question.route === 'document' ? [{ from: 0, to: span.to }] : undefined
    if (this.#troubles({ ...question, platform: undefined }, always?.[0] ?? span).length > 0) return
    if (question.provider.mayBeUnknown(always ?? timeline.learnt(span, BELIEF_MS))) return
    const { version } = question
    const learnt = always ?? timeline.learnt(span, LIST_MS + BELIEF_MS)
    if (version?.mayBeUnlisted(learnt)) return
    const editions = version?.during(learnt) ?? []
    if (editions.some(({ verdict }) => verdict !== 'accepted')) return
    throw new Violation('stale without a reason')
  }

  /** When the list behind an index was fetched. */
  #listSeen({ headers, span }: Answer): Span[] {
    switch (headers['terramirror-cache']) {
      case 'miss':
        return [span]
      case 'coalesced':
        return [{ from: span.from - FLIGHT_MS, to: span.to }]
      case 'hit':
        return this.#world.timeline
          .learnt(span, LIST_MS)
          .map(({ from, to }) => ({ from, to: Math.min(span.to, to + FLIGHT_MS) }))
      default:
        return [{ from: 0, to: span.to }]
    }
  }

  #troubles(question: Question, span: Span) {
    return this.#world.troublesFor(this.#scope(question), span)
  }

  #scope({ route, provider, version, platform }: Question): Scope {
    return {
      kinds: KINDS[route],
      host: provider.host,
      provider: provider.name,
      ...(version === undefined ? {} : { version: version.spelling }),
      ...(platform === undefined ? {} : { platform }),
    }
  }
}

interface Entry {
  readonly url: string
  readonly digest: string
  readonly h1: readonly string[]
}

function readEntry(platform: string, entry: unknown): Entry {
  if (!isRecord(entry) || typeof entry.url !== 'string' || !Array.isArray(entry.hashes)) {
    throw new Violation(`the entry of ${platform} is ${JSON.stringify(entry)}`)
  }
  const [first, ...rest] = entry.hashes.map(String)
  const digest = /^zh:([0-9a-f]{64})$/.exec(first ?? '')?.[1]
  if (digest === undefined) throw new Violation(`the first hash of ${platform} is ${first}`)
  if (!rest.every((hash) => /^h1:[A-Za-z0-9+/]{43}=$/.test(hash))) throw new Violation(`hashes of ${platform}: ${rest}`)
  return { url: entry.url, digest, h1: rest }
}

function assertLink(url: string, { provider, version }: TrueVersion, platform: string): void {
  const place = `/providers/${provider.name}/`
  const base = new URL(`https://mirror.test${place}${version}.json`)
  const resolved = new URL(url, base)
  const relative = !/^[a-z][a-z0-9+.-]*:|^\//i.test(url) && !/[?#@]/.test(url)
  const start = `${place}${version}/${platform}/`
  if (relative && resolved.origin === base.origin && decodeURIComponent(resolved.pathname).startsWith(start)) return
  throw new Violation(`the link for ${platform} is ${url}`)
}

function rangeOf(header: string | undefined, bytes: Buffer): [number, number] {
  const [, first, last, size] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(header ?? '') ?? []
  if (Number(size) !== bytes.length || Number(last) >= bytes.length) throw new Violation(`Content-Range is ${header}`)
  return [Number(first), Number(last) + 1]
}

function parse({ status, headers, body, whole }: Answer): Record<string, unknown> {
  if (!whole || headers['content-length'] !== String(body.length)) throw new Violation('a body without its length')
  if (headers['content-type'] !== 'application/json') throw new Violation(`Content-Type ${headers['content-type']}`)
  try {
    const document: unknown = JSON.parse(body.toString())
    if (isRecord(document)) return document
  } catch {
    // Told below.
  }
  throw new Violation(`the body of a ${status} is no JSON object: ${body.toString().slice(0, 200)}`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isEmptyRecord(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0
}
