import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Metrics } from '../src/metrics.ts'

const all = await new Metrics([]).registry.getMetricsAsJSON()
/** In this version of prom-client the declaration says a number where a word comes. */
const metrics = all.map(({ name, help, type }) => ({ name, help, type: String(type) }))

it('sums over all routes and hosts tell the traffic, with what was counted in bulk', async () => {
  const metrics = new Metrics([])
  expect(await metrics.readTraffic()).toEqual({ answers: {}, sentBytes: 0, receivedBytes: 0 })
  metrics.requests.inc({ route: '/a', status: '200', outcome: 'hit' }, 2)
  metrics.requests.inc({ route: '/b', status: '200', outcome: 'miss' })
  metrics.requests.inc({ route: '/b', status: '404', outcome: 'none' })
  metrics.upstreamBytes.inc({ host: 'a.test' }, 5)
  metrics.upstreamBytes.inc({ host: 'b.test' }, 6)
  metrics.sentBytes.inc({ route: '/a' }, 10)
  metrics.beforeRead = () => {
    metrics.beforeRead = () => undefined
    metrics.requests.inc({ route: '/b', status: '200', outcome: 'hit' })
    metrics.sentBytes.inc({ route: '/b' }, 7)
  }
  expect(await metrics.readTraffic()).toEqual({ answers: { hit: 3, miss: 1 }, sentBytes: 17, receivedBytes: 11 })
})

describe('metrics follow the conventions of Prometheus', () => {
  it('there are some, each with a name once', () => {
    expect(metrics.length).toBeGreaterThan(10)
    expect(new Set(metrics.map(({ name }) => name)).size).toBe(metrics.length)
  })

  it.each(metrics)('$name', ({ name, help, type }) => {
    expect(name).toMatch(/^terramirror(_[a-z]+)+$/)
    expect(help).toMatch(/^[A-Z].*\.$/)
    // Base units, counters by their ending and nothing else by theirs.
    expect(name).not.toMatch(/_(ms|milliseconds|minutes|kb|mb|kilobytes|megabytes|percent)(_|$)/)
    expect(name.endsWith('_total')).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
    expect(['counter', 'gauge', 'histogram']).toContain(type)
  })

  it('no label is one that a client can make up', () => {
    const { registry, ...rest } = new Metrics([])
    const labels = Object.values(rest).flatMap((metric) => {
      const names: unknown = Reflect.get(metric, 'labelNames')
      return Array.isArray(names) ? names.map(String) : []
    })
    expect([...new Set(labels)].sort()).toEqual(['host', 'outcome', 'reason', 'route', 'status', 'verdict'])
    expect(registry).toBeDefined()
  })

  it('two servers in one process do not share their counts', async () => {
    const [one, other] = [new Metrics([]), new Metrics([])]
    one.releaseChanges.inc()
    expect(await other.registry.metrics()).toContain('terramirror_release_changes_total 0')
  })
})

describe('the host label', () => {
  it('is the configured host, or the pattern that it is below', () => {
    const made = new Metrics(['registry.terraform.io', '*.corp.example', 'a.corp.example'])
    expect(made.hostLabel('registry.terraform.io')).toBe('registry.terraform.io')
    expect(made.hostLabel('a.corp.example')).toBe('a.corp.example')
    expect(made.hostLabel('x.corp.example')).toBe('*.corp.example')
    expect(made.hostLabel('corp.example')).toBe('corp.example')
  })

  it('is bounded: the first hundred other hosts keep their names, the rest share one', () => {
    const made = new Metrics([])
    const hosts = Array.from({ length: 300 }, (_, number) => `host-${number}.example`)
    const labels = new Set(hosts.map((host) => made.hostLabel(host)))
    expect(labels.size).toBe(101)
    expect(made.hostLabel('host-0.example')).toBe('host-0.example')
    expect(made.hostLabel('host-299.example')).toBe('other')
  })

  it('is bounded, whatever hosts come in whatever order, and the same host keeps its label', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 600 }), (numbers) => {
        const made = new Metrics(['h1.example', '*.corp.example'])
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
