import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { listMetrics, listProcessMetrics, metricNamesIn } from './metric-names.ts'
import { describePrometheus, MONITORING, promtool, startPrometheus, type TestPrometheus } from './prometheus-tools.ts'

interface Panel {
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly targets?: readonly { readonly expr: string }[]
}

const dashboard = JSON.parse(readFileSync(join(MONITORING, 'grafana-dashboard.json'), 'utf8'))
const panels: Panel[] = dashboard.panels
const expressions: { title: string; expr: string }[] = [
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
  ...dashboard.annotations.list.map(({ name, expr }: { name: string; expr: string }) => ({ title: name, expr })),
]

/** As Grafana fills it in before it asks. */
function filledIn(expression: string): string {
  return expression.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1h')
}

describe('the dashboard', () => {
  const own = listMetrics().map(({ name }) => name)
  const known = new Set([...own, ...listProcessMetrics().map(({ name }) => name)])

  it('answers the six questions', () => {
    expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).toEqual([
      'Is it well?',
      'What do clients get?',
      'What do origins do?',
      'What does it save?',
      'What is on disk?',
      'What was refused, and what do operators do?',
    ])
    expect(new Set(dashboard.panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length)
  })

  it.each(expressions)('$title asks for metrics that there are, of the chosen instances: $expr', ({ expr }) => {
    const names = metricNamesIn(expr)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(known, name).toContain(name)
    expect(expr.match(/instance=~"\$instance"/g)?.length).toBe(names.length)
  })

  it('shows every metric of the mirror somewhere, but for the mode', () => {
    const shown = new Set(expressions.flatMap(({ expr }) => metricNamesIn(expr)))
    expect(own.filter((name) => !shown.has(name))).toEqual(['terramirror_sealed'])
  })
})

describePrometheus('a real Prometheus', () => {
  let origin: TestOrigin
  let mirror: TestMirror
  let prometheus: TestPrometheus
  let archiveBytes: number

  beforeAll(async () => {
    origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await origin.publish({ provider: 'acme/broken', version: '1.0.0', sums: () => 'nonsense\n' })
    mirror = await startMirror({ origin, config: { metrics: { perProvider: true } } })
    archiveBytes = (await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')).body.length
    for (let each = 0; each < 2; each++) await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    expect((await mirror.archive('acme/broken', '1.0.0', 'linux_amd64')).status).toBe(502)
    prometheus = await startPrometheus({
      job_name: 'terramirror',
      scheme: 'https',
      tls_config: { ca_file: join(mirror.dataDir, 'state/tls/ca.pem') },
      static_configs: [{ targets: [`localhost:${new URL(mirror.url).port}`] }],
    })
    await vi.waitFor(async () => expect(await read('up{job="terramirror"}')).toBe(1), { timeout: 60_000 })
  }, 120_000)
  afterAll(async () => {
    await prometheus?.[Symbol.asyncDispose]()
    await mirror?.[Symbol.asyncDispose]()
    await origin?.[Symbol.asyncDispose]()
  })

  async function read(expression: string): Promise<number | undefined> {
    return (await prometheus.query(expression))[0]?.value
  }

  it('reaches the mirror over TLS and is told what happened', async () => {
    const archives = 'route="/providers/:hostname/:namespace/:type/:version/:platform/:filename"'
    // The account of a request is made after its answer; the next scrape has it.
    await expect.poll(() => read(`sum(terramirror_requests_total{${archives}})`), { timeout: 30_000 }).toBe(4)
    expect(await read(`terramirror_requests_total{${archives},outcome="hit",status="200"}`)).toBe(2)
    expect(await read(`sum(terramirror_requests_total{${archives},status=~"5.."})`)).toBe(1)
    expect(await read('terramirror_provider_requests_total{outcome="miss"}')).toBe(1)
    expect(await read('sum(terramirror_provider_sent_bytes_total)')).toBe(3 * archiveBytes)
    expect(await read('terramirror_verification_verdicts_total{verdict="signed-checksums"}')).toBe(4)
    expect(await read('sum(terramirror_verification_verdicts_total{verdict=~"[A-Z][A-Z_]+"}) > 0')).toBeDefined()
    expect(await read('terramirror_ready')).toBe(1)
    expect(await read('terramirror_certificate_expiry_timestamp_seconds{certificate="server"} > time()')).toBeDefined()
  })

  it('evaluates every rule without an error', async () => {
    const list = async () => {
      const { groups } = await prometheus.get('rules')
      return groups.flatMap(({ rules }: { rules: { health: string; name: string }[] }) => rules)
    }
    await expect
      .poll(async () => (await list()).every(({ health }: { health: string }) => health !== 'unknown'), {
        timeout: 30_000,
      })
      .toBe(true)
    const rules = await list()
    expect(rules.length).toBeGreaterThan(10)
    expect(rules.filter(({ health }: { health: string }) => health !== 'ok')).toEqual([])
  })

  it('evaluates every expression of the dashboard', async () => {
    for (const { expr } of expressions) await prometheus.query(filledIn(expr))
    const version = panels.find(({ title }) => title === 'Version')?.targets?.[0]?.expr ?? ''
    expect((await prometheus.query(filledIn(version)))[0]?.metric.version).toMatch(/\d/)
  })

  it('finds nothing to complain about in the metrics (promtool check metrics)', async () => {
    const { ok, text } = promtool(['check', 'metrics'], { input: await mirror.metrics() })
    expect({ ok, text }).toEqual({ ok: true, text: '' })
  })
})
