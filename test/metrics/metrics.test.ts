import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Metrics } from '../../src/metrics/metrics.ts'

const create = (origins: string[] = []) => new Metrics({ origins, perProvider: true })

const all = create().registry.getMetricsAsArray()
/** In this version of prom-client the declaration says a number where a word comes. */
const metrics = all.map((metric) => ({
  name: metric.name,
  help: metric.help,
  type: String(Reflect.get(metric, 'type')),
  labels: Reflect.get(metric, 'labelNames') as string[],
}))

/** Each with why it has few values. */
const LABELS: Readonly<Record<string, string>> = {
  route: 'templates',
  status: 'HTTP statuses',
  outcome: 'of the cache, or of an item of a job',
  host: 'configured, and a hundred others',
  reason: 'a closed list',
  verdict: 'rules and error codes',
  origin: 'configured',
  provider: 'limited to those in use',
  kind: 'two of each',
  state: 'of jobs',
  result: 'of a scrub',
  version: 'of the program',
  node_version: 'of Node.js',
  certificate: 'server, authority',
}

describe('metrics follow the conventions of Prometheus', () => {
  it('there are some, each with a name once', () => {
    expect(metrics.length).toBeGreaterThan(30)
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  })

  it.each(metrics)('$name', ({ name, help, type }) => {
    expect(name).toMatch(/^terramirror(_[a-z]+)+$/)
    expect(help).toMatch(/^[A-Z\d].*\.$/)
    // Base units, counters by their ending and nothing else by theirs.
    expect(name).not.toMatch(/_(ms|milliseconds|minutes|kb|mb|kilobytes|megabytes|percent)(_|$)/)
    expect(name.endsWith('_total')).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    if (/timestamp/.test(name)) expect(name).toMatch(/_timestamp_seconds$/)
    expect(['counter', 'gauge', 'histogram']).toContain(type)
  })

  it('no label is one that a client can make up', () => {
    const labels = new Set(metrics.flatMap(({ labels }) => labels))
    expect([...labels].sort()).toEqual(Object.keys(LABELS).sort())
  })

  it('two servers in one process do not share their counts', async () => {
    const [one, other] = [create(), create()]
    one.verification.releaseChanged()
    expect(await other.text()).toContain('terramirror_release_changes_total 0')
  })

  it('those of the process are there once, without the three whose names are those of counters', async () => {
    const [one, other] = [await create().text(), await create().text()]
    for (const text of [one, other]) {
      expect(text.match(/^# TYPE process_resident_memory_bytes gauge$/gm)).toHaveLength(1)
      expect(text).not.toMatch(/nodejs_active_\w+_total/)
    }
  })
})

describe('what is not known', () => {
  it('is not shown, and not taken for nothing', async () => {
    const made = create()
    const unknown = /^terramirror_(disk_\w+|held_items|scrub_last_completed\w+|scrub_orphan_blobs|origin_\w+)[ {]/m
    expect(await made.text()).not.toMatch(unknown)
    made.storage.showDisk({ used: 0, free: 5 })
    made.storage.showHeld('package', 0)
    const text = await made.text()
    expect(text).toContain('\nterramirror_disk_used_bytes 0\n')
    expect(text).toContain('\nterramirror_held_items{kind="package"} 0\n')
    expect(text).not.toMatch(/^terramirror_disk_limit_bytes /m)
    made.storage.showDisk({ free: undefined })
    made.storage.showHeld('package', undefined)
    const later = await made.text()
    expect(later).not.toMatch(/^terramirror_(disk_free_bytes|held_items)[ {]/m)
    expect(later).toContain('\nterramirror_disk_used_bytes 0\n')
  })
})

describe('what is counted in bulk', () => {
  it('is as if it had been counted singly', async () => {
    const answer = { route: '/a', status: 200, outcome: 'hit', bytes: 10, seconds: 0, provider: 'r/a/b' } as const
    const [bulk, single] = [create(), create()]
    bulk.clients.count({ ...answer, times: 3 })
    for (let each = 0; each < 3; each++) single.clients.count({ ...answer, times: 1 })
    expect(await bulk.registry.metrics()).toBe(await single.registry.metrics())
    expect(await bulk.registry.metrics()).toContain('terramirror_sent_bytes_total{route="/a"} 30')
  })

  it('is handed over before the metrics are read', async () => {
    const made = create()
    made.onRead(async () => made.verification.releaseChanged())
    expect(await made.text()).toContain('terramirror_release_changes_total 1')
  })
})

describe('the totals', () => {
  it('are sums over all series, what was counted in bulk among them', async () => {
    const made = create()
    const answer = { route: '/a', status: 200, seconds: 0, bytes: 10 } as const
    made.onRead(() => made.clients.count({ ...answer, outcome: 'hit', times: 2 }))
    made.clients.count({ ...answer, route: '/b', outcome: 'miss', times: 1 })
    made.clients.count({ ...answer, status: 404, outcome: undefined, times: 1 })
    for (const host of ['a.example', 'b.example']) made.upstream.received(host, 7)
    for (const reason of ['maxSize', 'orphan'] as const) made.storage.evicted({ reason, bytes: 5 })
    expect(await made.totals()).toEqual({
      answers: { hit: 2, miss: 1 },
      sentBytes: 40,
      receivedBytes: 14,
      evictions: { items: 2, bytes: 10 },
    })
  })
})

describe('jobs', () => {
  it('are open while they wait or run, and counted when they have ended', async () => {
    const { jobs, registry } = create()
    jobs.jobMoved({ kind: 'warm', to: 'queued' })
    jobs.jobMoved({ kind: 'warm', from: 'queued', to: 'running' })
    jobs.jobMoved({ kind: 'verify', to: 'running' })
    jobs.jobMoved({ kind: 'warm', from: 'running', to: 'failed' })
    const text = await registry.metrics()
    expect(text).toContain('terramirror_jobs_open{kind="warm",state="queued"} 0')
    expect(text).toContain('terramirror_jobs_open{kind="warm",state="running"} 0')
    expect(text).toContain('terramirror_jobs_open{kind="verify",state="running"} 1')
    expect(text).toContain('terramirror_jobs_ended_total{kind="warm",state="failed"} 1')
  })
})

describe('metrics of single providers', () => {
  const answer = { route: '/a', outcome: 'hit', bytes: 10, seconds: 1, times: 1 } as const

  it('are there only when they are wanted', async () => {
    const made = new Metrics({ origins: [], perProvider: false })
    made.clients.count({ ...answer, status: 200, provider: 'r/a/b' })
    expect(await made.text()).not.toContain('terramirror_provider_')
  })

  it('are of what exists: errors make no series', async () => {
    const made = create()
    for (const status of [0, 404, 502]) made.clients.count({ ...answer, status, provider: `r/a/made-up-${status}` })
    made.clients.count({ ...answer, status: 304, provider: 'r/a/real' })
    const text = await made.text()
    expect(text).not.toContain('made-up')
    expect(text).toContain('terramirror_provider_requests_total{provider="r/a/real",outcome="hit"} 1')
    expect(text).toContain('terramirror_provider_sent_bytes_total{provider="r/a/real"} 10')
  })

  it('are bounded', async () => {
    const made = create()
    for (let each = 0; each < 1_000; each++) {
      made.clients.count({ ...answer, status: 200, provider: `r/a/p-${each}` })
    }
    const text = await made.text()
    expect(text.match(/^terramirror_provider_sent_bytes_total\{/gm)).toHaveLength(201)
    expect(text).toContain('terramirror_provider_sent_bytes_total{provider="other"} 8000')
  })
})

describe('the host label', () => {
  it('is the configured host, or the longest pattern that it is below', () => {
    const made = create(['registry.terraform.io', '*.example', '*.corp.example', 'a.corp.example']).upstream
    expect(made.hostLabel('registry.terraform.io')).toBe('registry.terraform.io')
    expect(made.hostLabel('a.corp.example')).toBe('a.corp.example')
    expect(made.hostLabel('x.corp.example')).toBe('*.corp.example')
    expect(made.hostLabel('corp.example')).toBe('*.example')
    expect(made.hostLabel('corp.test')).toBe('corp.test')
  })

  it('is bounded: the first hundred other hosts keep their names, the rest share one', () => {
    const made = create().upstream
    const hosts = Array.from({ length: 300 }, (_, number) => `host-${number}.example`)
    const labels = new Set(hosts.map((host) => made.hostLabel(host)))
    expect(labels.size).toBe(101)
    expect(made.hostLabel('host-0.example')).toBe('host-0.example')
    expect(made.hostLabel('host-299.example')).toBe('other')
  })

  it('is bounded, whatever hosts come in whatever order, and the same host keeps its label', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 600 }), (numbers) => {
        const made = create(['h1.example', '*.corp.example']).upstream
        const seen = new Map<string, string>()
        for (const number of numbers) {
          const host = number % 3 === 0 ? `h${number}.corp.example` : `h${number}.example`
          const label = made.hostLabel(host)
          if (seen.get(host) !== 'other') expect(seen.get(host) ?? label).toBe(label)
          seen.set(host, label)
        }
        expect(new Set(seen.values()).size).toBeLessThanOrEqual(103)
      }),
    )
  })
})
