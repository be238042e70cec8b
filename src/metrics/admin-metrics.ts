import { Counter, Histogram, type Registry } from 'prom-client'
import type { AdminObserver } from '../admin/observer.ts'

/** What is asked of the admin API. */
export class AdminMetrics implements AdminObserver {
  readonly #requests: Counter<'route' | 'status'>
  readonly #seconds: Histogram<'route'>
  readonly #refusedTokens: Counter<'reason'>
  readonly #auditFailures: Counter

  constructor(registry: Registry) {
    const registers = [registry]
    this.#requests = new Counter({
      name: 'terramirror_admin_requests_total',
      help: 'Requests to the admin API answered, by route and HTTP status.',
      labelNames: ['route', 'status'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'terramirror_admin_request_duration_seconds',
      help: 'Time from a request to the admin API to the last byte of its answer, by route.',
      labelNames: ['route'],
      buckets: [0.02, 0.1, 0.5, 2, 8, 30],
      registers,
    })
    this.#refusedTokens = new Counter({
      name: 'terramirror_admin_refused_tokens_total',
      help: 'Requests to the admin API without a token (missing) or with a wrong one.',
      labelNames: ['reason'],
      registers,
    })
    for (const reason of ['missing', 'wrong'] as const) this.#refusedTokens.inc({ reason }, 0)
    this.#auditFailures = new Counter({
      name: 'terramirror_audit_failures_total',
      help: 'Changes that the audit log could not take.',
      registers,
    })
  }

  adminAnswered({ route, status, seconds }: Parameters<AdminObserver['adminAnswered']>[0]): void {
    this.#requests.inc({ route, status: String(status) })
    this.#seconds.observe({ route }, seconds)
  }

  tokenRefused(reason: 'missing' | 'wrong'): void {
    this.#refusedTokens.inc({ reason })
  }

  auditFailed(): void {
    this.#auditFailures.inc()
  }
}
