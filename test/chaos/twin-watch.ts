import type { TestOrigin } from '../origin/origin.ts'
import type { RecordedRequest } from '../origin/origin-request.ts'

/** A request that the mirror has given up may take a moment to end at the origin. */
const LINGER_MS = 700

/** Sees whether the mirror asks for one thing twice at a time. */
export class TwinWatch {
  /** Keys of requests that ran side by side for long. */
  readonly found: string[] = []
  readonly #origin: TestOrigin

  constructor(origin: TestOrigin) {
    this.#origin = origin
  }

  /** Looks at a request that has just come in. Always false, so that it can be the condition of a fault. */
  watch(request: RecordedRequest): false {
    const isTwin = (other: RecordedRequest): boolean => other.key === request.key && other.outcome === 'pending'
    const running = this.#origin.requests.filter((other) => other !== request && isTwin(other))
    if (running.length === 0) return false
    const look = (): void => {
      if (isTwin(request) && running.some(isTwin)) this.found.push(request.key)
    }
    setTimeout(look, LINGER_MS).unref()
    return false
  }
}
