import { Registry } from 'prom-client'
import { AdminMetrics } from './admin-metrics.ts'
import { ClientMetrics } from './client-metrics.ts'
import { InstanceMetrics } from './instance-metrics.ts'
import { JobMetrics } from './job-metrics.ts'
import { processMetrics } from './process-metrics.ts'
import { StorageMetrics } from './storage-metrics.ts'
import { UpstreamMetrics } from './upstream-metrics.ts'
import { VerificationMetrics } from './verification-metrics.ts'

/** What depends on the configuration. */
export interface MetricsOptions {
  /** Keys of the configured origins: hosts, and patterns such as `*.corp.example`. */
  readonly origins: Iterable<string>
  /** Count each provider that is used by itself. */
  readonly perProvider: boolean
}

/** Sums over all series, since the start. */
export interface Totals {
  /** By cache outcome; only those that happened. */
  readonly answers: Readonly<Record<string, number>>
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly evictions: { readonly items: number; readonly bytes: number }
}

/**
 * Every metric of Terramirror, declared once, each group in a file of its own. Labels are bounded: never an address that a
 * client can make up.
 */
export class Metrics {
  /** Of this server alone; those of the process come on top in `text`. */
  readonly registry = new Registry()
  readonly instance = new InstanceMetrics(this.registry)
  readonly clients: ClientMetrics
  readonly upstream: UpstreamMetrics
  readonly verification = new VerificationMetrics(this.registry)
  readonly storage = new StorageMetrics(this.registry)
  readonly jobs = new JobMetrics(this.registry)
  readonly admin = new AdminMetrics(this.registry)
  readonly contentType = this.registry.contentType
  readonly #updates: (() => void | Promise<void>)[] = []

  constructor({ origins, perProvider }: MetricsOptions) {
    this.clients = new ClientMetrics(this.registry, { perProvider })
    this.upstream = new UpstreamMetrics(this.registry, origins)
  }

  /**
   * Runs `update` whenever the metrics are about to be read: whoever counts in bulk hands over then, and what is only
   * looked at is looked at then. It must not throw, and not wait for long.
   */
  onRead(update: () => void | Promise<void>): void {
    this.#updates.push(update)
  }

  /** What has been counted since the start, for people. */
  async totals(): Promise<Totals> {
    await this.#update()
    return {
      ...(await this.clients.totals()),
      receivedBytes: await this.upstream.receivedBytes(),
      evictions: await this.storage.evictions(),
    }
  }

  /** All metrics as Prometheus reads them. */
  async text(): Promise<string> {
    await this.#update()
    return `${await this.registry.metrics()}\n${await processMetrics().metrics()}`
  }

  async #update(): Promise<void> {
    await Promise.all(this.#updates.map((update) => update()))
  }
}
