import { readFileSync } from 'node:fs'
import type { Span } from './timeline.ts'

const EVERY_MS = 500
/** A process that had to wait this much since the last look may have missed the mirror's shortest limits (1.5 s). */
const BUSY_MS = 150
/** Busy stretches closer than this are one. */
const JOIN_MS = 1_000

/**
 * Sees when the machine is too busy for the mirror and its origin: how long their threads wanted to run and were not
 * let, as Linux counts it. What they then do late is nobody's fault. Where Linux does not tell, nothing is excused.
 */
export class MachineWatch implements Disposable {
  /** As `/proc` names them. */
  #processes: readonly string[] = ['self']
  readonly #timer: NodeJS.Timeout
  readonly #waitedMs = new Map<string, number>()
  readonly #spans: { from: number; to: number }[] = []
  #lastLook = performance.now()
  /** Since then, all processes together. */
  #waitMs = 0

  constructor() {
    this.#timer = setInterval(() => this.#look(), EVERY_MS)
    this.#timer.unref()
  }

  /** Watches this process and that one, and no other. */
  follow(pid: number): void {
    this.#processes = ['self', String(pid)]
  }

  /** When it was busy, up to this moment. */
  busySpans(): readonly Span[] {
    this.#look()
    return this.#spans
  }

  /** For how long of a span it was busy, in ms. */
  busyMs(span: Span): number {
    const shared = ({ from, to }: Span): number => Math.max(0, Math.min(to, span.to) - Math.max(from, span.from))
    return this.busySpans().reduce((sum, stretch) => sum + shared(stretch), 0)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    for (const pid of this.#processes) {
      const total = totalWaitMs(pid)
      this.#waitMs += total - (this.#waitedMs.get(pid) ?? total)
      this.#waitedMs.set(pid, total)
    }
    if (this.#waitMs >= BUSY_MS) this.#note({ from: this.#lastLook, to: now })
    else if (now - this.#lastLook < EVERY_MS) return
    this.#lastLook = now
    this.#waitMs = 0
  }

  #note({ from, to }: Span): void {
    const last = this.#spans.at(-1)
    if (last !== undefined && from - last.to < JOIN_MS) last.to = to
    else this.#spans.push({ from, to })
  }
}

/** The second number of `/proc/PID/schedstat`: how long the main thread has waited on the run queue; 0 if not told. */
function totalWaitMs(pid: string): number {
  try {
    const [, waited = '0'] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')
    return Number(waited) / 1_000_000
  } catch {
    return 0
  }
}
