import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { findOriginKey } from '../policy/origin-key.ts'
import type { RetryReason } from '../upstream/failure.ts'
import type { UpstreamObserver } from '../upstream/observer.ts'
import type { OriginState } from '../upstream/origin-states.ts'
import { sum } from './sum.ts'

const MAX_HOSTS = 100

/** What origins, and the hosts that they point to, do. */
export class UpstreamMetrics implements UpstreamObserver {
  readonly #requests: Counter<'host' | 'status'>
  readonly #seconds: Histogram<'host'>
  readonly #bytes: Counter<'host'>
  readonly #retries: Counter<'host' | 'reason'>
  readonly #inFlight: Gauge<'host'>
  readonly #failing: Gauge<'origin'>
  readonly #lastAnswer: Gauge<'origin'>
  readonly #lastError: Gauge<'origin'>
  readonly #origins: readonly string[]
  readonly #hosts = new Set<string>()

  /** `origins` are the keys of the configured origins: hosts, and patterns such as `*.corp.example`. */
  constructor(registry: Registry, origins: Iterable<string>) {
    const registers = [registry]
    this.#origins = [...origins]
    this.#requests = new Counter({
      name: 'terramirror_upstream_requests_total',
      help: 'Requests sent to origins, by host and HTTP status ("error" if none came). Fetches by git are not among them.',
      labelNames: ['host', 'status'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'terramirror_upstream_request_duration_seconds',
      help: 'Time until an origin answered with its headers, by host.',
      labelNames: ['host'],
      buckets: [0.02, 0.1, 0.5, 1, 2, 4, 8],
      registers,
    })
    this.#bytes = new Counter({
      name: 'terramirror_upstream_received_bytes_total',
      help: 'Bytes received from origins, by host.',
      labelNames: ['host'],
      registers,
    })
    this.#retries = new Counter({
      name: 'terramirror_upstream_retries_total',
      help: 'Requests to origins that were tried again or resumed, by host and reason.',
      labelNames: ['host', 'reason'],
      registers,
    })
    this.#inFlight = new Gauge({
      name: 'terramirror_upstream_requests_in_flight',
      help: 'Requests to origins that were sent and whose answers are not completely here, by host.',
      labelNames: ['host'],
      registers,
    })
    this.#failing = new Gauge({
      name: 'terramirror_origin_failing',
      help: '1 if the last question to a configured origin failed or it limits our requests, 0 if it is well or was not asked yet.',
      labelNames: ['origin'],
      registers,
    })
    this.#lastAnswer = new Gauge({
      name: 'terramirror_origin_last_answer_timestamp_seconds',
      help: 'When a configured origin last answered, in seconds since 1970; missing before the first time.',
      labelNames: ['origin'],
      registers,
    })
    this.#lastError = new Gauge({
      name: 'terramirror_origin_last_error_timestamp_seconds',
      help: 'When a question to a configured origin last failed, in seconds since 1970; missing before the first time.',
      labelNames: ['origin'],
      registers,
    })
  }

  sending(name: string, change: 1 | -1): void {
    this.#inFlight.inc({ host: this.hostLabel(name) }, change)
  }

  answered(name: string, status: number | 'error', durationMs: number): void {
    const host = this.hostLabel(name)
    this.#requests.inc({ host, status: String(status) })
    this.#seconds.observe({ host }, durationMs / 1_000)
  }

  received(name: string, bytes: number): void {
    this.#bytes.inc({ host: this.hostLabel(name) }, bytes)
  }

  retried(name: string, reason: RetryReason): void {
    this.#retries.inc({ host: this.hostLabel(name), reason })
  }

  /** Bytes received since the start. */
  async receivedBytes(): Promise<number> {
    return sum(await this.#bytes.get())
  }

  /** Shows the health of each configured origin as it is now. */
  showOrigins(states: readonly OriginState[]): void {
    for (const { host: origin, health, lastAnswerAt, lastError } of states) {
      this.#failing.set({ origin }, health === 'failing' || health === 'backingOff' ? 1 : 0)
      if (lastAnswerAt !== null) this.#lastAnswer.set({ origin }, Date.parse(lastAnswerAt) / 1_000)
      if (lastError !== null) this.#lastError.set({ origin }, Date.parse(lastError.at) / 1_000)
    }
  }

  /**
   * The `host` label for an upstream. Clients may make up hosts below a pattern, so those count under the pattern;
   * documents and redirects of origins may name any number of hosts: those beyond the first hundred count as `other`.
   */
  hostLabel(host: string): string {
    const origin = findOriginKey(this.#origins, host)
    if (origin !== undefined) return origin
    if (this.#hosts.size < MAX_HOSTS) this.#hosts.add(host)
    return this.#hosts.has(host) ? host : 'other'
  }
}
