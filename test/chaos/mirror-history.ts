import type { DiskFault } from './disk-fault.ts'
import { beginPeriod, endPeriod, type Period, type Span, touches } from './timeline.ts'

/** What failed to be written or read may be felt for this long after the disk is well. */
const SLACK_MS = 4_000

/** How a question met the mirror. */
export interface Circumstances {
  /** In which the question was asked. */
  readonly life: number
  /** The mirror was starting, stopping or dead during the question. */
  readonly disturbed: boolean
  readonly sealed: boolean
  readonly unreadable: boolean
  /** Something could not be written during the question, or shortly before it. */
  readonly unwritable: boolean
}

interface DiskTrouble {
  readonly kind: DiskFault['kind']
  readonly period: Period
}

/** What was done to a mirror's process and its disk, and when. */
export class MirrorHistory {
  readonly #lives: { readonly sealed: boolean; readonly from: number }[] = []
  readonly #deaths: Period[] = []
  readonly #diskTroubles: DiskTrouble[] = []

  /** Counts the starts, from 1. */
  get life(): number {
    return this.#lives.length
  }

  /** A life begins, before its process. */
  noteStart({ sealed }: { sealed: boolean }): void {
    this.#lives.push({ sealed, from: performance.now() })
  }

  /** The process is up. */
  async noteUp(): Promise<void> {
    const death = this.#deaths.at(-1)
    if (death?.to === Number.POSITIVE_INFINITY) await endPeriod(death, () => undefined)
  }

  /** The process is about to be ended. */
  async noteEnd(): Promise<void> {
    await beginPeriod(
      (period) => this.#deaths.push(period),
      () => undefined,
    )
  }

  /** The trouble of the disk that lasts. */
  get diskTrouble(): DiskFault['kind'] | undefined {
    return this.#lastingDiskTrouble()?.kind
  }

  /** Begins a trouble of the disk with what `tell` does. */
  async beginDiskTrouble(kind: DiskFault['kind'], tell: () => Promise<unknown>): Promise<void> {
    await beginPeriod((period) => this.#diskTroubles.push({ kind, period }), tell)
  }

  /** Ends the trouble of the disk, if there is one, with what `tell` does. */
  async endDiskTrouble(tell: () => Promise<unknown>): Promise<void> {
    const lasting = this.#lastingDiskTrouble()
    if (lasting !== undefined) await endPeriod(lasting.period, tell)
  }

  /** How a question met the mirror that was asked and answered in that span. */
  circumstances(span: Span): Circumstances {
    const felt = (kinds: readonly DiskFault['kind'][]): boolean =>
      this.#diskTroubles.some(
        ({ kind, period }) => kinds.includes(kind) && touches({ from: period.from, to: period.to + SLACK_MS }, [span]),
      )
    const life = this.#lives.findLastIndex(({ from }) => from <= span.from)
    return {
      life: life + 1,
      disturbed: this.#deaths.some((death) => touches(death, [span])),
      sealed: this.#lives[life]?.sealed ?? false,
      unreadable: felt(['unreadable']),
      unwritable: felt(['full', 'unwritable', 'unreadable']),
    }
  }

  #lastingDiskTrouble(): DiskTrouble | undefined {
    const last = this.#diskTroubles.at(-1)
    return last?.period.to === Number.POSITIVE_INFINITY ? last : undefined
  }
}
