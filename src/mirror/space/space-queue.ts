import type { SpaceReservation } from './space-reservation.ts'

/** A wish for more space. */
export interface SpaceRequest extends PromiseWithResolvers<void> {
  readonly reservation: SpaceReservation
  readonly bytes: number
  /** Milliseconds of `performance.now()`. */
  readonly since: number
  /** Served before all others: the rest may wait for it. */
  readonly goesFirst: boolean
}

/** Those who wait for space: the oldest reservation first, so that what was begun first is done first. */
export class SpaceQueue {
  readonly #requests: SpaceRequest[] = []

  get size(): number {
    return this.#requests.length
  }

  get head(): SpaceRequest | undefined {
    return this.#requests[0]
  }

  /** Adds a request in its place. */
  add(request: SpaceRequest): void {
    const isBefore = (other: SpaceRequest): boolean =>
      request.goesFirst || (!other.goesFirst && request.reservation.age < other.reservation.age)
    const place = this.#requests.findIndex(isBefore)
    this.#requests.splice(place === -1 ? this.size : place, 0, request)
  }

  /** Fine if it is not there. */
  remove(request: SpaceRequest): void {
    const place = this.#requests.indexOf(request)
    if (place !== -1) this.#requests.splice(place, 1)
  }

  /** Takes out all that `matches`, and refuses them; `onRefused` is told of each. */
  refuse(reason: unknown, matches: (request: SpaceRequest) => boolean = () => true, onRefused?: () => void): void {
    for (const request of this.#requests.filter(matches)) {
      this.remove(request)
      request.reject(reason)
      onRefused?.()
    }
  }
}
