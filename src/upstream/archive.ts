import type { Dispatcher } from 'undici'
import { type Answer, findContentLength, findHeader } from './answer.ts'
import { contentEncodings, readBody } from './body.ts'
import { AttemptFailed, tooLarge, torn } from './failure.ts'
import type { ArchivePiece, ArchiveStream } from './provider-upstream.ts'
import { type OriginRules, openAnswer } from './redirects.ts'
import { Retries, type RetryOptions } from './retry.ts'
import { assertNoOutage, type StatusOptions, statusFailure } from './status.ts'

/** One archive to download. */
export interface ArchiveJob {
  readonly url: URL
  readonly dispatcher: Dispatcher
  readonly headers: Readonly<Record<string, string>>
  readonly maxBytes: number
  /** The host of `url` may see the origin's token. */
  readonly trusted: boolean
  readonly headersTimeoutMs: number
  readonly body: StatusOptions
  readonly retry: Omit<RetryOptions, 'url' | 'maxRetryAfterMs'>
}

const maxRedirects = 10
const maxRetryAfterMs = 30_000
/** An attempt that brought this much counts as progress. */
const progressBytes = 1_000_000

/** Opens an archive as `OriginClient.openArchive` promises. */
export async function openArchive(rules: OriginRules, job: ArchiveJob): Promise<ArchiveStream> {
  const download = new ArchiveDownload(rules, job)
  await download.open()
  return download
}

/** What must hold for the rest of an archive to belong to the part that we have. */
interface Entity {
  /** Strong ETag or Last-Modified, for `If-Range`. */
  readonly validator: string | undefined
  readonly etag: string | undefined
  /** Length of the whole archive; undefined if not told, or if the body is encoded. */
  readonly size: number | undefined
  readonly resumable: boolean
}

class ArchiveDownload implements ArchiveStream {
  readonly #rules: OriginRules
  readonly #job: ArchiveJob
  readonly #retries: Retries
  #answer: Answer | undefined
  #entity: Entity = { validator: undefined, etag: undefined, size: undefined, resumable: false }
  #received = 0

  constructor(rules: OriginRules, job: ArchiveJob) {
    this.#rules = rules
    this.#job = job
    this.#retries = new Retries({ ...job.retry, url: job.url, maxRetryAfterMs })
  }

  get size(): number | undefined {
    return this.#entity.size
  }

  async open(): Promise<void> {
    await this.#retries.run(() => this.#openFromStart())
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ArchivePiece, void, undefined> {
    for (;;) {
      const before = this.#received
      try {
        yield* this.#pieces()
        return
      } catch (error) {
        if (!(error instanceof AttemptFailed)) throw error
        if (this.#received - before >= progressBytes) this.#retries.reset()
        await this.#retries.pause(error)
      }
      const resumed = await this.#retries.run(() => this.#reopen())
      if (resumed || this.#received === 0) continue
      this.#received = 0
      yield { kind: 'restart' }
    }
  }

  async *#pieces(): AsyncGenerator<ArchivePiece, void, undefined> {
    const answer = this.#answer
    if (answer === undefined) throw new Error('an archive can be read only once')
    this.#answer = undefined
    const { maxBytes, body } = this.#job
    for await (const bytes of readBody(answer, body)) {
      this.#received += bytes.length
      if (this.#received > maxBytes) throw tooLarge(answer.url, maxBytes)
      yield { kind: 'bytes', bytes }
    }
    const { size } = this.#entity
    if (size !== undefined && size !== this.#received) {
      throw torn(answer.url, `the archive has ${this.#received} of the ${size} bytes that were announced`)
    }
  }

  /** Continues where the archive broke off, or opens it from its start. @returns whether it continues */
  async #reopen(): Promise<boolean> {
    if (this.#received > 0 && this.#entity.resumable) {
      const answer = await this.#send({
        range: `bytes=${this.#received}-`,
        ...(this.#entity.validator !== undefined && { 'if-range': this.#entity.validator }),
      })
      if (continues(answer, this.#entity, this.#received)) {
        this.#answer = answer
        return true
      }
      if (answer.status === 200) {
        this.#begin(answer)
        return false
      }
      answer.body.destroy()
    }
    await this.#openFromStart()
    return false
  }

  async #openFromStart(): Promise<void> {
    const answer = await this.#send({})
    if (answer.status !== 200) throw await statusFailure(answer, this.#job.body)
    this.#begin(answer)
  }

  #begin(answer: Answer): void {
    const entity = entityOf(answer)
    if (entity.size !== undefined && entity.size > this.#job.maxBytes) {
      answer.body.destroy()
      throw tooLarge(answer.url, this.#job.maxBytes)
    }
    this.#entity = entity
    this.#answer = answer
  }

  async #send(headers: Readonly<Record<string, string>>): Promise<Answer> {
    const job = this.#job
    const answer = await openAnswer(this.#rules, {
      ...job,
      // An encoded archive could not be resumed.
      headers: { ...job.headers, 'accept-encoding': 'identity', ...headers },
      signal: job.body.signal,
      maxRedirects,
    })
    await assertNoOutage(answer, job.body)
    return answer
  }
}

function entityOf(answer: Answer): Entity {
  const etag = findHeader(answer, 'etag')
  const validator = etag?.startsWith('"') ? etag : findHeader(answer, 'last-modified')
  const encoded = contentEncodings(answer).length > 0
  const size = encoded ? undefined : findContentLength(answer)
  return { validator, etag, size, resumable: !encoded && (validator !== undefined || size !== undefined) }
}

/** Whether an answer to a range request is the rest of the same archive. */
function continues(answer: Answer, entity: Entity, start: number): boolean {
  if (answer.status !== 206 || contentEncodings(answer).length > 0) return false
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(findHeader(answer, 'content-range') ?? '') ?? []
  const etag = findHeader(answer, 'etag')
  if (Number(first) !== start || (etag !== undefined && entity.etag !== undefined && etag !== entity.etag)) return false
  if (total !== '*' && Number(last) + 1 !== Number(total)) return false
  return entity.size === undefined || Number(total) === entity.size
}
