import { Violation } from './answer-format.ts'
import { ArchiveJudge } from './archive-judge.ts'
import type { ChaosMirror } from './chaos-mirror.ts'
import type { Answer } from './client.ts'
import { ContentJudge } from './content-judge.ts'
import { DocumentJudge } from './document-judge.ts'
import { FailureJudge } from './failure-judge.ts'
import type { Knowledge } from './knowledge.ts'
import type { MachineWatch } from './machine-watch.ts'
import type { Circumstances } from './mirror-history.ts'
import type { Question } from './question.ts'
import { Reasons } from './reasons.ts'
import type { Span } from './timeline.ts'
import type { World } from './world.ts'

/** Documents come within 8 s; the rest is for the way there and back. */
const MAX_DOCUMENT_MS = 10_000

/**
 * Holds answers against the status table of the design (section 3) and bytes against the truth, knowing only what a
 * witness of the origin and of all answers knows. Where the design or the timing leave several answers open, all of
 * them are allowed, and nothing else.
 */
export class Judge {
  readonly #mirror: ChaosMirror
  readonly #machine: MachineWatch
  readonly #archives: ArchiveJudge
  readonly #documents: DocumentJudge
  readonly #failures: FailureJudge

  constructor({ world, knowledge, mirror }: { world: World; knowledge: Knowledge; mirror: ChaosMirror }) {
    const reasons = new Reasons(world, knowledge)
    const contents = new ContentJudge(knowledge)
    this.#mirror = mirror
    this.#machine = world.machine
    this.#failures = new FailureJudge(reasons, knowledge)
    this.#archives = new ArchiveJudge(contents, knowledge)
    this.#documents = new DocumentJudge({ reasons, knowledge, contents, failures: this.#failures })
  }

  /** Judges any answer, and learns from it. @throws Violation */
  judge(question: Question, answer: Answer, head = false): void {
    const { route } = question
    const { status, span } = answer
    const met = this.#mirror.circumstances(span)
    if (answer.left) {
      if (route === 'archive') this.#archives.judgePart(question, answer)
      return
    }
    if (answer.trouble !== undefined) {
      assertMayBreak(question, answer, met)
      return
    }
    if (route !== 'archive') this.#assertInTime(span)
    if (status === 304 || status === 416) this.#archives.judgeUnsent(question, answer, head)
    else if (status !== 200 && status !== 206) this.#failures.judge(question, answer, { ...met, head })
    else if (route === 'index') this.#documents.judgeIndex(question, answer, met)
    else if (route === 'document') this.#documents.judgeVersion(question, answer, met)
    else if (head) this.#archives.judgeHead(question, answer)
    else this.#archives.judgeWhole(question, answer, met.life)
  }

  #assertInTime(span: Span): void {
    const tookMs = span.to - span.from
    if (tookMs > MAX_DOCUMENT_MS + this.#machine.busyMs(span)) throw new Violation(`it took ${Math.round(tookMs)} ms`)
  }
}

/** @throws Violation if nothing explains why a connection broke */
function assertMayBreak({ route }: Question, { trouble }: Answer, met: Circumstances): void {
  if (met.disturbed || (route === 'archive' && met.unreadable)) return
  throw new Violation(`the connection broke: ${trouble}`)
}
