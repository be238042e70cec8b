import { createHash } from 'node:crypto'
import { assertLink, isEmptyRecord, isRecord, parseObject, rangeOf, readEntry, Violation } from './answer-format.ts'
import type { ChaosMirror, Circumstances } from './chaos-mirror.ts'
import type { Answer } from './client.ts'
import type { Knowledge } from './knowledge.ts'
import { isZip, type Question } from './question.ts'
import { Reasons } from './reasons.ts'
import type { Span } from './timeline.ts'
import type { Content, Edition, TrueVersion } from './truth.ts'
import type { World } from './world.ts'

/** Documents come within 8 s; the rest is for a busy machine. */
const MAX_DOCUMENT_MS = 13_000

/**
 * Holds answers against the status table of the design (section 3) and bytes against the truth, knowing only what a
 * witness of the origin and of all answers knows. Where the design or the timing leave several answers open, all of
 * them are allowed, and nothing else.
 */
export class Judge {
  readonly #reasons: Reasons
  readonly #knowledge: Knowledge
  readonly #mirror: ChaosMirror

  constructor(parts: { world: World; knowledge: Knowledge; mirror: ChaosMirror }) {
    this.#reasons = new Reasons(parts.world, parts.knowledge)
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

  #judgeBroken({ route }: Question, { trouble }: Answer, met: Circumstances): void {
    if (met.disturbed || (route === 'archive' && met.unreadable)) return
    throw new Violation(`the connection broke: ${trouble}`)
  }

  #judgeIndex(question: Question, answer: Answer, met: Circumstances): void {
    const { provider } = question
    const { versions } = parseObject(answer)
    if (!isRecord(versions) || Object.values(versions).some((value) => !isEmptyRecord(value))) {
      throw new Violation('index.json is not { "versions": { VERSION: {} } }')
    }
    this.#assertNotForeign(question)
    this.#assertOutcome(question, answer, met)
    const seen = this.#reasons.listSeen(question, answer)
    for (const version of Object.keys(versions)) {
      const truth = provider.versions.get(version)
      if (truth === undefined) throw new Violation(`the origin never listed ${version}`)
      const listed = truth.listed.some(({ from, to }) => seen.some((span) => from <= span.to && span.from <= to))
      if (!listed && !this.#knowledge.wasAsked(truth)) throw new Violation(`${version} was not listed at that time`)
      if (met.sealed && !met.disturbed && !this.#knowledge.wasAsked(truth))
        throw new Violation(`${version} is not held`)
    }
    const garbled = [answer.span, ...seen].some((span) => this.#reasons.mayBeGarbled(question, span))
    if (!met.disturbed && !met.unwritable && !garbled && answer.headers['terramirror-cache'] === 'miss') {
      this.#knowledge.noteList(provider, answer.span.from)
    }
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
    const { archives } = parseObject(answer)
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
    const complete = !met.sealed && !met.disturbed && answer.headers['terramirror-cache'] !== 'stale'
    for (const platform of complete ? this.#reasons.platformsDue(question, answer.span) : []) {
      if (!hashes.has(platform)) throw new Violation(`${platform} is published, and left out`)
    }
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
    const { etag, 'content-length': length } = answer.headers
    const digest = /^"([0-9a-f]{64})"$/.exec(etag ?? '')?.[1]
    if (digest === undefined) throw new Violation(`the ETag is ${etag}`)
    // HEAD of a cold archive tells what the evidence says, and nothing of its bytes.
    const asArchive = length !== undefined
    return this.#findContent(version, new Map([[platform, { digest }]]), { span: answer.span, asArchive })
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
    const editions = version.editions.filter((edition) => this.#mayAccept(version, edition, { span, asArchive }))
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

  #mayAccept(version: TrueVersion, edition: Edition, how: { span: Span; asArchive: boolean }): boolean {
    if (edition.period.from > how.span.to) return false
    if (edition.verdict !== 'unsigned') return edition.verdict === 'accepted'
    // On the word of a checksum alone nobody gets what does not even unpack.
    if (how.asArchive && !isZip(edition)) return false
    return this.#knowledge.mayAcceptUnsigned(version, edition, how.span.to)
  }

  #judgeFailure(question: Question, answer: Answer, met: Circumstances): void {
    const { status, headers } = answer
    if (status === 304 || status === 416) return
    const { error, code, request_id: requestId, upstream_url: upstreamUrl = '' } = parseObject(answer)
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
      if (question.route === 'index') this.#knowledge.loseList(question.provider)
      this.#assertMayBeAbsent(question, answer, met)
      return
    }
    if (met.unreadable && status === 500) return
    if (met.disturbed && status === 503) return
    if (question.foreign) throw new Violation(`a host that is not served got ${status}`)
    if (met.sealed && !met.disturbed) throw new Violation(`a sealed mirror answered ${status}`)
    this.#assertNotHeld(question, span)
    if (question.route === 'index' && !this.#reasons.mayLackList(question, span)) {
      throw new Violation('a list is held, and could be served stale')
    }
    if (!this.#reasons.failures(question, span, met).has(status)) throw new Violation(`${status} without a reason`)
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
    if (question.foreign || (question.route !== 'index' && question.version === undefined)) return
    this.#assertNotHeld(question, span)
    if (met.sealed || met.disturbed || this.#reasons.mayBeAbsent(question, span)) return
    throw new Violation('told as absent, and the origin never said so')
  }

  /** Stale answers have a reason. */
  #assertOutcome(question: Question, { headers, span }: Answer, met: Circumstances): void {
    const outcome = String(headers['terramirror-cache'])
    if (!['hit', 'miss', 'coalesced', 'stale', 'negative'].includes(outcome)) throw new Violation(`outcome ${outcome}`)
    if (outcome !== 'stale' || met.disturbed || this.#reasons.mayBeStale(question, span)) return
    throw new Violation('stale without a reason')
  }

  #assertNotForeign(question: Question): void {
    if (question.foreign) throw new Violation('a host that is not served got an answer')
  }
}
