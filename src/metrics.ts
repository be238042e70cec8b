import { Counter, Gauge, Histogram, Registry } from 'prom-client'

const MAX_HOSTS = 100

/** Sums over all routes and hosts, since the start. */
export interface TrafficSums {
  /** Answers by cache outcome; those that had none are left out. */
  readonly answers: Record<string, number>
  readonly sentBytes: number
  readonly receivedBytes: number
}

/** Every metric of Terramirror, declared once. Labels are bounded: never an address that a client can make up. */
export class Metrics {
  /** Called before the metrics are read: whoever counts in bulk counts then. */
  beforeRead: () => void = () => undefined
  /** Bytes that are reserved for what is being fetched. */
  reserved: () => number = () => 0
  readonly registry = new Registry()
  readonly requests = new Counter({
    name: 'terramirror_requests_total',
    help: 'Requests answered, by route, HTTP status and cache outcome.',
    labelNames: ['route', 'status', 'outcome'] as const,
    registers: [this.registry],
    // The first one that is read.
    collect: () => this.beforeRead(),
  })
  readonly requestSeconds = new Histogram({
    name: 'terramirror_request_duration_seconds',
    help: 'Time from the request to the last byte of its answer, by route.',
    labelNames: ['route'] as const,
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 8, 30, 120, 600],
    registers: [this.registry],
  })
  readonly sentBytes = new Counter({
    name: 'terramirror_sent_bytes_total',
    help: 'Bytes of answer bodies sent to clients, by route.',
    labelNames: ['route'] as const,
    registers: [this.registry],
  })
  readonly upstreamRequests = new Counter({
    name: 'terramirror_upstream_requests_total',
    help: 'Requests sent to origins, by host and HTTP status ("error" if none came).',
    labelNames: ['host', 'status'] as const,
    registers: [this.registry],
  })
  readonly upstreamSeconds = new Histogram({
    name: 'terramirror_upstream_request_duration_seconds',
    help: 'Time until an origin answered with its headers, by host.',
    labelNames: ['host'] as const,
    buckets: [0.02, 0.1, 0.5, 1, 2, 4, 8],
    registers: [this.registry],
  })
  readonly upstreamBytes = new Counter({
    name: 'terramirror_upstream_received_bytes_total',
    help: 'Bytes received from origins, by host.',
    labelNames: ['host'] as const,
    registers: [this.registry],
  })
  readonly upstreamRetries = new Counter({
    name: 'terramirror_upstream_retries_total',
    help: 'Requests to origins that were tried again or resumed, by host.',
    labelNames: ['host'] as const,
    registers: [this.registry],
  })
  readonly verdicts = new Counter({
    name: 'terramirror_verification_verdicts_total',
    help: 'Platforms of releases that were let in (by rule) or refused (by error code).',
    labelNames: ['verdict'] as const,
    registers: [this.registry],
  })
  readonly releaseChanges = new Counter({
    name: 'terramirror_release_changes_total',
    help: 'How often an origin offered other bytes for a version that was seen before.',
    registers: [this.registry],
  })
  readonly damagedBlobs = new Counter({
    name: 'terramirror_damaged_blobs_total',
    help: 'Stored files that were found damaged and set aside.',
    registers: [this.registry],
  })
  readonly cacheBytes = new Gauge({
    name: 'terramirror_cache_bytes',
    help: 'Bytes of all stored archives and evidence.',
    registers: [this.registry],
  })
  readonly diskBytes = new Gauge({
    name: 'terramirror_disk_used_bytes',
    help: 'Disk blocks of all stored archives and evidence, in bytes.',
    registers: [this.registry],
  })
  readonly reservedBytes: Gauge = new Gauge({
    name: 'terramirror_disk_reserved_bytes',
    help: 'Disk space reserved for what is being fetched, in bytes.',
    registers: [this.registry],
    collect: () => this.reservedBytes.set(this.reserved()),
  })
  readonly evictedItems = new Counter({
    name: 'terramirror_evicted_items_total',
    help: 'Archives and orphaned files that were evicted to make space, by reason.',
    labelNames: ['reason'] as const,
    registers: [this.registry],
  })
  readonly evictedBytes = new Counter({
    name: 'terramirror_evicted_bytes_total',
    help: 'Disk space that evictions freed, in bytes, by reason.',
    labelNames: ['reason'] as const,
    registers: [this.registry],
  })
  readonly downloads = new Gauge({
    name: 'terramirror_downloads_in_flight',
    help: 'Archives that are being downloaded from origins.',
    registers: [this.registry],
  })

  readonly #origins: ReadonlySet<string>
  readonly #patterns: readonly string[]
  readonly #hosts = new Set<string>()

  /** `origins` are the keys of the configured origins: hosts, and patterns such as `*.corp.example`. */
  constructor(origins: Iterable<string>) {
    this.#origins = new Set(origins)
    this.#patterns = [...this.#origins].filter((origin) => origin.startsWith('*.'))
  }

  /** What was answered, sent and received. */
  async readTraffic(): Promise<TrafficSums> {
    const answers: Record<string, number> = {}
    for (const { labels, value } of (await this.requests.get()).values) {
      const outcome = String(labels.outcome)
      if (outcome !== 'none') answers[outcome] = (answers[outcome] ?? 0) + value
    }
    // After the requests: reading those brings what was counted in bulk.
    return { answers, sentBytes: await sumOf(this.sentBytes), receivedBytes: await sumOf(this.upstreamBytes) }
  }

  /**
   * The `host` label for an upstream. Clients may make up hosts below a pattern, so those count under the pattern;
   * documents and redirects of origins may name any number of hosts: those beyond the first hundred count as `other`.
   */
  hostLabel(host: string): string {
    if (this.#origins.has(host)) return host
    const pattern = this.#patterns.find((each) => host.endsWith(each.slice(1)))
    if (pattern !== undefined) return pattern
    if (this.#hosts.size < MAX_HOSTS) this.#hosts.add(host)
    return this.#hosts.has(host) ? host : 'other'
  }
}

async function sumOf(counter: Counter): Promise<number> {
  return (await counter.get()).values.reduce((sum, { value }) => sum + value, 0)
}
