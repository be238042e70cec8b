import { createHash } from 'node:crypto'
import { assertNotForeign, rangeOf, Violation } from './answer-format.ts'
import type { Answer } from './client.ts'
import type { ContentJudge } from './content-judge.ts'
import type { Knowledge } from './knowledge.ts'
import type { Question } from './question.ts'
import type { Content, TrueVersion } from './truth.ts'

/** Holds archives against the truth, byte for byte. */
export class ArchiveJudge {
  readonly #contents: ContentJudge
  readonly #knowledge: Knowledge

  constructor(contents: ContentJudge, knowledge: Knowledge) {
    this.#contents = contents
    this.#knowledge = knowledge
  }

  /** Judges an archive, or a range of it, and learns that it is held from now on. @throws Violation */
  judgeWhole(question: Question, answer: Answer, life: number): void {
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
    this.#knowledge.noteReceived(version, { platform, content, life })
  }

  /** @throws Violation */
  judgeHead(question: Question, answer: Answer): void {
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

  /** A client that left has received the beginning of the right bytes, or nothing. @throws Violation */
  judgePart(question: Question, answer: Answer): void {
    const { platform = '' } = question
    if (answer.status !== 200 || answer.body.length === 0) return
    const archive = this.#contentOf(question, answer).archives.get(platform)
    if (archive?.bytes.subarray(0, answer.body.length).equals(answer.body) !== true) {
      throw new Violation(`WRONG BYTES: ${answer.body.length} bytes are not the beginning of ${archive?.digest}`)
    }
  }

  /** A 304 or 416 speaks of an archive that the mirror may serve. @throws Violation */
  judgeUnsent(question: Question, answer: Answer, head: boolean): void {
    const { platform } = this.#servable(question)
    const { bytes } = this.#contentOf(question, answer, !head).archives.get(platform) ?? {}
    if (answer.body.length > 0) throw new Violation(`an answer ${answer.status} has a body`)
    const range = answer.headers['content-range']
    if (answer.status === 416 && range !== `bytes */${bytes?.length}`) throw new Violation(`Content-Range is ${range}`)
  }

  /**
   * The content that an archive's ETag names, which the mirror may serve. HEAD of a cold archive tells what the evidence
   * says, and nothing of its bytes.
   */
  #contentOf(question: Question, answer: Answer, asArchive = answer.headers['content-length'] !== undefined): Content {
    const { version, platform } = this.#servable(question)
    const { etag } = answer.headers
    const digest = /^"([0-9a-f]{64})"$/.exec(etag ?? '')?.[1]
    if (digest === undefined) throw new Violation(`the ETag is ${etag}`)
    return this.#contents.find(version, new Map([[platform, { digest }]]), { span: answer.span, asArchive })
  }

  #servable(question: Question): { version: TrueVersion; platform: string } {
    assertNotForeign(question)
    const { version, platform } = question
    if (version === undefined || platform === undefined) throw new Violation('an archive of something that is none')
    return { version, platform }
  }
}
