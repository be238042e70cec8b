import type { Fault } from '../origin/fault.ts'
import type { TestOrigin } from '../origin/origin.ts'
import type { RecordedRequest } from '../origin/origin-request.ts'
import type { MachineWatch } from './machine-watch.ts'

/** A request that the mirror has given up may take a moment to end at the origin. */
const LINGER_MS = 700
/** On a busy machine it takes longer. */
const MAX_LOOKS = 10

/** Sees whether the mirror asks for one archive twice at a time. */
export class TwinWatch {
  /** Keys of requests that ran side by side for long. */
  readonly found: string[] = []
  readonly #origin: TestOrigin
  readonly #machine: MachineWatch
  #fault: Fault | undefined

  constructor(origin: TestOrigin, machine: MachineWatch) {
    this.#origin = origin
    this.#machine = machine
    this.renew()
  }

  /** The newest fault is asked first: this one sees every request, and strikes none. After each new fault and reset. */
  renew(): void {
    this.#fault?.clear()
    this.#fault = this.#origin.fault({ kind: 'archive', when: (request) => this.#watch(request) }, {})
  }

  #watch(request: RecordedRequest): false {
    const twins = this.#origin.requests.filter((other) => other !== request && isPending(other, request.key))
    if (twins.length > 0) this.#lookLater(request, twins, 1)
    return false
  }

  #lookLater(request: RecordedRequest, twins: readonly RecordedRequest[], looks: number): void {
    const from = performance.now()
    const look = (): void => {
      const { key } = request
      if (!isPending(request, key) || !twins.some((twin) => isPending(twin, key))) return
      const busy = this.#machine.busyMs({ from, to: performance.now() }) > 0
      if (busy && looks < MAX_LOOKS) this.#lookLater(request, twins, looks + 1)
      else this.found.push(key)
    }
    setTimeout(look, LINGER_MS).unref()
  }
}

function isPending({ key, outcome }: RecordedRequest, wanted: string): boolean {
  return key === wanted && outcome === 'pending'
}
