import type { ClientWork } from './client-work.ts'

/** A piece of work that may have several waiters. `Tail` is what it shows of itself while it runs. */
export interface Flight<T, Tail = undefined> {
  /** Settles when the work does. Waiters may leave; the work goes on, unless all who might leave have said so. */
  readonly done: Promise<T>
  /** True for every caller but the one that began it. */
  readonly joined: boolean
  /** The same for all waiters. */
  tail(): Tail
}

/** What flights have in common. */
export interface FlightOptions<Tail> {
  /** Makes what one piece of work shows of itself; without it, nothing is shown. */
  readonly createTail?: () => Tail
  /** Counts the work that was asked for by who does not leave. */
  readonly clientWork?: ClientWork | undefined
}

/**
 * Runs one piece of work per key at a time; callers that come meanwhile share it, its failure too, and the next caller
 * after that begins anew (design, rule 6).
 */
export class SingleFlight<T, Tail = undefined> {
  readonly #running = new Map<string, Running<T, Tail>>()
  /** Also what was given up and has not ended yet. */
  readonly #all = new Set<Promise<T>>()
  readonly #options: FlightOptions<Tail>

  constructor(
    ...[options]: undefined extends Tail ? [options?: FlightOptions<Tail>] : [options: Required<FlightOptions<Tail>>]
  ) {
    this.#options = options ?? {}
  }

  /**
   * Joins the running work for `key`, or begins it. `leaving` fires when the caller wants it no more: once all who asked
   * have left, the signal of the work fires with the same reason, and who comes then begins anew. Without `leaving` the
   * work goes on to its end, whoever waits.
   */
  run(key: string, work: (tail: Tail, signal: AbortSignal) => Promise<T>, leaving?: AbortSignal): Flight<T, Tail> {
    const running = this.#running.get(key)
    const flight = running ?? this.#begin(key, work)
    flight.join(leaving)
    return { done: flight.done, joined: running !== undefined, tail: () => flight.tail }
  }

  /** Waits until nothing is running. */
  async idle(): Promise<void> {
    while (this.#all.size > 0) await Promise.allSettled(this.#all)
  }

  #begin(key: string, work: (tail: Tail, signal: AbortSignal) => Promise<T>): Running<T, Tail> {
    const tail = this.#options.createTail?.() as Tail
    const abandoned = new AbortController()
    const done = Promise.resolve(tail)
      .then((shown) => work(shown, abandoned.signal))
      .finally(() => {
        end()
        running.end()
        this.#all.delete(done)
      })
    // A failure belongs to whoever waits; if all have left, it is nobody's.
    done.catch(() => undefined)
    const running = new Running(done, tail, { abandoned, clientWork: this.#options.clientWork })
    const end = (): void => {
      if (this.#running.get(key) === running) this.#running.delete(key)
    }
    abandoned.signal.addEventListener('abort', end)
    this.#running.set(key, running)
    this.#all.add(done)
    return running
  }
}

/** One piece of work, and who is interested in it. */
class Running<T, Tail> {
  readonly done: Promise<T>
  readonly tail: Tail
  readonly #abandoned: AbortController
  readonly #clientWork: ClientWork | undefined
  /** Somebody wants it to go on to its end. */
  #stays = false
  readonly #mayLeave = new Map<AbortSignal, () => void>()

  constructor(
    done: Promise<T>,
    tail: Tail,
    { abandoned, clientWork }: { abandoned: AbortController; clientWork: ClientWork | undefined },
  ) {
    this.done = done
    this.tail = tail
    this.#abandoned = abandoned
    this.#clientWork = clientWork
  }

  join(leaving: AbortSignal | undefined): void {
    if (leaving === undefined) this.#stay()
    else if (leaving.aborted) this.#leave(leaving)
    else if (!this.#mayLeave.has(leaving)) {
      const leave = (): void => this.#leave(leaving)
      this.#mayLeave.set(leaving, leave)
      leaving.addEventListener('abort', leave, { once: true })
    }
  }

  end(): void {
    for (const [signal, leave] of this.#mayLeave) signal.removeEventListener('abort', leave)
    this.#mayLeave.clear()
    if (this.#stays) this.#clientWork?.count(-1)
  }

  #stay(): void {
    if (this.#stays) return
    this.#stays = true
    this.#clientWork?.count(1)
  }

  #leave(signal: AbortSignal): void {
    this.#mayLeave.delete(signal)
    if (!this.#stays && this.#mayLeave.size === 0) this.#abandoned.abort(signal.reason)
  }
}
