import { Counter, Histogram, type Registry } from 'prom-client'
import type { CacheOutcome } from '../mirror/call.ts'
import { LimitedLabels } from './limited-labels.ts'
import { sum } from './sum.ts'

/** Answers that were given `times` times, all alike. */
export interface CountedAnswer {
  /** Template of the route, never the path itself. */
  readonly route: string
  readonly status: number
  readonly outcome: CacheOutcome | undefined
  /** Of the body of one of them. */
  readonly bytes: number
  /** Of one of them: from the request to the last byte. */
  readonly seconds: number
  /** Address of the provider that was asked for. */
  readonly provider?: string | undefined
  /** How long ago its origin last confirmed a stale answer, in ms, where that is known. */
  readonly staleForMs?: number | undefined
  readonly times: number
}

/** Providers with series of their own, and for how long one that nobody asks for keeps them. */
const MAX_PROVIDERS = 200
const PROVIDER_IDLE_MS = 3_600_000

/** What clients get. */
export class ClientMetrics {
  readonly #requests: Counter<'route' | 'status' | 'outcome'>
  readonly #seconds: Histogram<'route' | 'outcome'>
  readonly #bytes: Counter<'route'>
  readonly #staleSeconds: Histogram<'route'>
  readonly #providers: ProviderMetrics | undefined

  constructor(registry: Registry, { perProvider }: { perProvider: boolean }) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'terramirror_requests_total',
      help: 'Requests answered, by route, HTTP status and cache outcome.',
      labelNames: ['route', 'status', 'outcome'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'terramirror_request_duration_seconds',
      help: 'Time from the request to the last byte of its answer, by route and cache outcome.',
      labelNames: ['route', 'outcome'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 8, 30, 120, 600],
      registers,
    })
    this.#bytes = new Counter({
      name: 'terramirror_sent_bytes_total',
      help: 'Bytes of answer bodies sent to clients, by route.',
      labelNames: ['route'],
      registers,
    })
    this.#staleSeconds = new Histogram({
      name: 'terramirror_stale_answer_age_seconds',
      help: 'How long ago its origin last confirmed what was answered stale, by route, where that is known.',
      labelNames: ['route'],
      buckets: [60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000],
      registers,
    })
    this.#providers = perProvider ? new ProviderMetrics(registry) : undefined
  }

  /** Answers by outcome, those that have one, and bytes sent, since the start. */
  async totals(): Promise<{ answers: Record<string, number>; sentBytes: number }> {
    const answers: Record<string, number> = {}
    for (const { labels, value } of (await this.#requests.get()).values) {
      const outcome = String(labels.outcome)
      if (outcome !== 'none') answers[outcome] = (answers[outcome] ?? 0) + value
    }
    return { answers, sentBytes: sum(await this.#bytes.get()) }
  }

  /** Answers have been given. */
  count(answer: CountedAnswer): void {
    const { route, status, bytes, seconds, provider, staleForMs, times } = answer
    const outcome = answer.outcome ?? 'none'
    this.#requests.inc({ route, status: String(status), outcome }, times)
    this.#bytes.inc({ route }, bytes * times)
    const labels = { route, outcome }
    for (let each = 0; each < times; each++) this.#seconds.observe(labels, seconds)
    if (staleForMs !== undefined) this.#staleSeconds.observe({ route }, staleForMs / 1_000)
    // What does not exist anybody can make up.
    if (provider !== undefined && status > 0 && status < 400) {
      this.#providers?.count(provider, { outcome, bytes: bytes * times, times })
    }
  }
}

/** `metrics.perProvider`: the providers that are used, each with series of its own. */
class ProviderMetrics {
  readonly #requests: Counter<'provider' | 'outcome'>
  readonly #bytes: Counter<'provider'>
  readonly #labels: LimitedLabels
  readonly #outcomes = new Set<string>()

  constructor(registry: Registry) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'terramirror_provider_requests_total',
      help: `Requests answered without an error, by provider and cache outcome; beyond ${MAX_PROVIDERS} providers in use, "other". Only with metrics.perProvider.`,
      labelNames: ['provider', 'outcome'],
      registers,
    })
    this.#bytes = new Counter({
      name: 'terramirror_provider_sent_bytes_total',
      help: 'Bytes of answer bodies sent to clients, by provider as in terramirror_provider_requests_total.',
      labelNames: ['provider'],
      registers,
    })
    this.#labels = new LimitedLabels({
      max: MAX_PROVIDERS,
      idleMs: PROVIDER_IDLE_MS,
      onDrop: (provider) => this.#drop(provider),
    })
  }

  count(name: string, { outcome, bytes, times }: { outcome: string; bytes: number; times: number }): void {
    const provider = this.#labels.of(name)
    this.#outcomes.add(outcome)
    this.#requests.inc({ provider, outcome }, times)
    this.#bytes.inc({ provider }, bytes)
  }

  #drop(provider: string): void {
    for (const outcome of this.#outcomes) this.#requests.remove({ provider, outcome })
    this.#bytes.remove({ provider })
  }
}
