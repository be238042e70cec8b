import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

const HOST = 'registry.example.test'
const ROUTES = {
  index: '/providers/:hostname/:namespace/:type/index.json',
  version: '/providers/:hostname/:namespace/:type/:version.json',
  archive: '/providers/:hostname/:namespace/:type/:version/:platform/:filename',
}

let origin: TestOrigin

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
})
beforeEach(() => origin.reset())
afterAll(() => origin[Symbol.asyncDispose]())

/** The lines of the log about requests, once `count` of them are there: a line is written after its answer. */
async function requestLines(mirror: TestMirror, count: number): Promise<Record<string, unknown>[]> {
  const lines = () => mirror.logLines.filter(({ msg }) => msg === 'request')
  await vi.waitFor(() => expect(lines().length).toBeGreaterThanOrEqual(count), 15_000)
  return lines()
}

/** Name and labels of every series, without the value. */
function seriesOf(metrics: string): string[] {
  return metrics
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')))
}

/** The value of a series; 0 if it does not exist. */
function valueIn(metrics: string, series: string): number {
  const line = metrics.split('\n').find((each) => each.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1) ?? 0)
}

describe('health', () => {
  test('healthz and readyz do not depend on any origin', async () => {
    await using lost = await startOrigin()
    await using mirror = await startMirror({ origin: lost })
    await lost.stop()
    expect((await mirror.index('acme/widget')).status).toBe(502)
    const health = await mirror.ask('/healthz')
    expect([health.status, health.json()]).toEqual([200, { status: 'ok' }])
    const ready = await mirror.ask('/readyz')
    expect([ready.status, ready.json()]).toEqual([200, { status: 'ready' }])
  })

  test('healthz and readyz answer at once while an origin hangs', async () => {
    await using mirror = await startMirror({ origin })
    origin.fault({}, { hang: true })
    const hanging = mirror.index('acme/widget').catch(() => undefined)
    await origin.until(() => origin.inFlight > 0)
    expect((await mirror.ask('/healthz')).status).toBe(200)
    expect((await mirror.ask('/readyz')).status).toBe(200)
    expect(origin.inFlight).toBeGreaterThan(0)
    await origin.stop()
    await hanging
    await origin.start()
  })
})

describe('metrics', () => {
  test('are in the format of Prometheus, with a type and a help for each, under one prefix', async () => {
    await using mirror = await startMirror({ origin })
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    const answer = await mirror.ask('/metrics')
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/)
    const text = answer.body.toString()
    const declared = new Set([...text.matchAll(/^# TYPE (\S+) (counter|gauge|histogram)$/gm)].map(([, name]) => name))
    const names = [
      'terramirror_requests_total',
      'terramirror_request_duration_seconds',
      'terramirror_sent_bytes_total',
      'terramirror_upstream_requests_total',
      'terramirror_upstream_request_duration_seconds',
      'terramirror_upstream_received_bytes_total',
      'terramirror_upstream_retries_total',
      'terramirror_verification_verdicts_total',
      'terramirror_release_changes_total',
      'terramirror_damaged_blobs_total',
      'terramirror_cache_bytes',
      'terramirror_downloads_in_flight',
    ]
    for (const name of names) {
      expect(declared).toContain(name)
      expect(text).toMatch(new RegExp(`^# HELP ${name} \\S+`, 'm'))
    }
    for (const series of seriesOf(text)) {
      const name = series.replace(/\{.*$/, '').replace(/_(bucket|sum|count)$/, '')
      expect(declared.has(name) || declared.has(series.replace(/\{.*$/, '')), series).toBe(true)
      expect(series).toMatch(/^(terramirror|process|nodejs)_/)
    }
  })

  test('count what happened', async () => {
    await using mirror = await startMirror({ origin })
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    await requestLines(mirror, 2)
    const metrics = await mirror.metrics()
    const requests = (outcome: string) =>
      `terramirror_requests_total{route="${ROUTES.archive}",status="200",outcome="${outcome}"}`
    expect(valueIn(metrics, requests('miss'))).toBe(1)
    expect(valueIn(metrics, requests('hit'))).toBe(1)
    const sent = valueIn(metrics, `terramirror_sent_bytes_total{route="${ROUTES.archive}"}`)
    expect(sent).toBe(2 * archive.body.length)
    expect(valueIn(metrics, `terramirror_upstream_requests_total{host="${HOST}",status="200"}`)).toBe(
      origin.requests.length,
    )
    expect(valueIn(metrics, 'terramirror_verification_verdicts_total{verdict="signed-checksums"}')).toBe(4)
    expect(valueIn(metrics, 'terramirror_cache_bytes')).toBeGreaterThanOrEqual(archive.body.length)
    expect(valueIn(metrics, 'terramirror_downloads_in_flight')).toBe(0)
  })

  test('tell what this instance is: its version, its mode, its certificates, its disk, its origins', async () => {
    await using mirror = await startMirror({ origin })
    await mirror.index('acme/widget')
    const metrics = await mirror.metrics()
    expect(metrics).toMatch(/^terramirror_build_info\{version="[^"]+",node_version="v\d[^"]+"\} 1$/m)
    expect(valueIn(metrics, 'terramirror_ready')).toBe(1)
    expect(metrics).toMatch(/^terramirror_sealed 0$/m)
    const now = Date.now() / 1_000
    for (const each of ['server', 'authority']) {
      const expiry = valueIn(metrics, `terramirror_certificate_expiry_timestamp_seconds{certificate="${each}"}`)
      expect(expiry).toBeGreaterThan(now + 30 * 86_400)
    }
    expect(valueIn(metrics, 'terramirror_disk_free_bytes')).toBeGreaterThan(0)
    expect(valueIn(metrics, 'terramirror_disk_size_bytes')).toBeGreaterThanOrEqual(
      valueIn(metrics, 'terramirror_disk_free_bytes'),
    )
    expect(metrics).toContain(`terramirror_origin_failing{origin="${HOST}"} 0`)
    const answered = valueIn(metrics, `terramirror_origin_last_answer_timestamp_seconds{origin="${HOST}"}`)
    expect(Math.abs(answered - now)).toBeLessThan(60)
    expect(valueIn(metrics, `terramirror_upstream_requests_in_flight{host="${HOST}"}`)).toBe(0)
  })

  test('tell of an origin that hangs while it hangs, and how old the answers are that are given instead', async () => {
    let now = Date.now()
    const config = { freshness: { versions: '1m' } }
    await using mirror = await startMirror({ origin, config, now: () => now })
    await mirror.index('acme/widget')
    now += 3_600_000
    origin.fault({ kind: 'versions' }, { hang: true })
    const stale = await mirror.index('acme/widget')
    expect(stale.headers['terramirror-cache']).toBe('stale')
    await requestLines(mirror, 2)
    const metrics = await mirror.metrics()
    expect(valueIn(metrics, `terramirror_upstream_requests_in_flight{host="${HOST}"}`)).toBe(1)
    const age = (bound: string) =>
      valueIn(metrics, `terramirror_stale_answer_age_seconds_bucket{le="${bound}",route="${ROUTES.index}"}`)
    expect([age('600'), age('21600')]).toEqual([0, 1])
  })

  test('count each provider that is used, where that is wanted', async () => {
    await using mirror = await startMirror({ origin, config: { metrics: { perProvider: true } } })
    const archive = await mirror.archive('acme/widget', '1.0.0', 'linux_amd64')
    // Of these most are answered from memory, and counted in bulk.
    for (let each = 0; each < 5; each++) await mirror.index('acme/widget')
    await mirror.index('acme/nothing')
    await requestLines(mirror, 7)
    const metrics = await mirror.metrics()
    const provider = `provider="${HOST}/acme/widget"`
    expect(valueIn(metrics, `terramirror_provider_requests_total{${provider},outcome="miss"}`)).toBe(1)
    expect(valueIn(metrics, `terramirror_provider_requests_total{${provider},outcome="hit"}`)).toBe(5)
    expect(valueIn(metrics, `terramirror_provider_sent_bytes_total{${provider}}`)).toBeGreaterThan(archive.body.length)
    expect(metrics).not.toContain('acme/nothing')
  })

  test('hundreds of made-up providers, hosts and paths add no series', { timeout: 240_000 }, async () => {
    // A pattern lets clients choose host names, and each one is looked up.
    const config = { origins: { '*.made-up.invalid': {} }, upstream: { retries: 0 } }
    await using mirror = await startMirror({ origin, config })
    const invent = (round: number): string[] =>
      Array.from({ length: 50 }, (_, each) => `${round}x${each}`).flatMap((name) => [
        `/providers/${HOST}/acme/t${name}/index.json`,
        `/providers/${HOST}/n${name}/widget/1.0.0.json`,
        `/providers/${HOST}/acme/widget/${name.replace('x', '.')}.9.json`,
        `/providers/${HOST}/acme/widget/1.0.0/os${name}_arch/x.zip`,
        `/providers/h${name}.example/acme/widget/index.json`,
        `/providers/h${name}.made-up.invalid/acme/widget/index.json`,
        `/v1/providers/n${name}/widget/versions`,
        `/${name}`,
      ])
    const askAll = async (paths: string[]): Promise<void> => {
      const queue = [...paths]
      const worker = async (): Promise<void> => {
        for (let path = queue.pop(); path !== undefined; path = queue.pop()) await mirror.ask(path)
      }
      await Promise.all(Array.from({ length: 32 }, worker))
    }
    const few = invent(0).slice(0, 16)
    await askAll(few)
    await requestLines(mirror, few.length)
    // What is measured after the start is there once and for all.
    const measured = /^terramirror_held_items\{kind="module"\}[\s\S]*^terramirror_disk_used_bytes \d/m
    await expect.poll(() => mirror.metrics(), { timeout: 30_000 }).toMatch(measured)
    const before = seriesOf(await mirror.metrics())
    const many = invent(1)
    await askAll(many)
    await requestLines(mirror, few.length + many.length)
    const after = seriesOf(await mirror.metrics())
    const fresh = after.filter((series) => !before.includes(series) && !series.includes('route="/metrics"'))
    // Kinds of garbage collection come as they happen, and so does a 504 of a machine that is too busy: known labels, both.
    const happens = /^nodejs_|status="504"|outcome="none"/
    expect(fresh.filter((series) => !happens.test(series))).toEqual([])
  })
})

describe('the log', () => {
  test('has one line for each request, with the route as a template and what was parsed', async () => {
    await using mirror = await startMirror({ origin, config: { log: { format: 'json', level: 'info' } } })
    const answers = [
      await mirror.index('acme/widget'),
      await mirror.version('ACME/widget', '1.0.0'),
      await mirror.archive('acme/widget', '1.0.0', 'linux_amd64'),
      await mirror.archive('acme/widget', '1.0.0', 'linux_amd64', { method: 'HEAD' }),
      await mirror.ask('/v1/providers/acme/widget/versions'),
      await mirror.ask('/providers/%00/acme/widget/index.json'),
      await mirror.ask('/healthz', { method: 'DELETE' }),
    ]
    const provider = `${HOST}/acme/widget`
    const archive = { route: ROUTES.archive, provider, version: '1.0.0', platform: 'linux_amd64' }
    const size = Number(answers[2]?.headers['content-length'])
    const expected = [
      { method: 'GET', route: ROUTES.index, provider, status: 200, outcome: 'miss', level: 'info' },
      { method: 'GET', route: ROUTES.version, provider, version: '1.0.0', status: 200, outcome: 'miss' },
      { method: 'GET', ...archive, status: 200, outcome: 'miss', bytes: size },
      { method: 'HEAD', ...archive, status: 200, outcome: 'hit', bytes: 0 },
      { method: 'GET', route: 'not found', status: 404, level: 'warn' },
      { method: 'GET', route: 'refused', status: 400, level: 'warn', err: { code: 'HOSTILE_INPUT' } },
      { method: 'DELETE', route: 'refused', status: 405, level: 'warn', err: { code: 'METHOD_NOT_ALLOWED' } },
    ]
    const lines = await requestLines(mirror, expected.length)
    expect(lines).toHaveLength(expected.length)
    for (const [place, { headers }] of answers.entries()) {
      const line = lines.filter(({ requestId }) => requestId === headers['x-request-id'])
      expect(line).toMatchObject([expected[place] ?? {}])
      expect(line[0]?.ms).toBeTypeOf('number')
    }
  })

  test('never repeats a path or a query of a request', async () => {
    await using mirror = await startMirror({ origin, config: { log: { format: 'json', level: 'trace' } } })
    await mirror.ask('/providers/planted-path/x?token=planted-query')
    await mirror.ask(`/providers/${HOST}/acme/widget/index.json?token=planted-query`)
    await mirror.ask('/providers/planted%00path/x/y/index.json')
    await mirror.ask('/healthz?token=planted-query', { method: 'POST' })
    await requestLines(mirror, 4)
    expect(mirror.logText).not.toContain('planted')
  })

  test('tells at the default level which call to an origin failed, and how', async () => {
    await using mirror = await startMirror({ origin, config: { log: { format: 'json', level: 'info' } } })
    const url = `https://${HOST}/v1/providers/acme`
    const warned = (upstreamUrl: string, more: Record<string, unknown>) =>
      vi.waitFor(() => {
        const lines = mirror.logLines.filter(({ level, msg }) => level === 'warn' && msg !== 'request')
        const err = { upstreamUrl, ...more }
        expect(lines).toContainEqual(expect.objectContaining({ err: expect.objectContaining(err) }))
      }, 15_000)
    origin.fault({ kind: 'versions', provider: 'acme/a' }, { status: 500 })
    expect((await mirror.index('acme/a')).status).toBe(502)
    await warned(`${url}/a/versions`, { code: 'UPSTREAM_STATUS', upstreamStatus: 500 })

    await origin.publish({ provider: 'acme/b', version: '1.0.0', platforms: ['linux_amd64', 'darwin_arm64'] })
    origin.fault({ kind: 'download', provider: 'acme/b', platform: 'darwin_arm64' }, { status: 403 })
    expect((await mirror.version('acme/b', '1.0.0')).status).toBe(200)
    await warned(`${url}/b/1.0.0/download/darwin/arm64`, { code: 'UPSTREAM_STATUS', upstreamStatus: 403 })

    await origin.publish({ provider: 'acme/c', version: '1.0.0' })
    const sums = origin.fault({ kind: 'sums', provider: 'acme/c' }, { drop: true })
    expect((await mirror.version('acme/c', '1.0.0')).status).toBe(502)
    expect(sums.struck).toBeGreaterThan(0)
    const sumsUrl = `https://${HOST}/releases/${HOST}/acme/c/1.0.0/terraform-provider-c_1.0.0_SHA256SUMS`
    await warned(sumsUrl, { code: 'UPSTREAM_UNREACHABLE' })
  })

  test('tells of a failed download of an archive on the line of the request', async () => {
    await using mirror = await startMirror({ origin, config: { log: { format: 'json', level: 'info' } } })
    await origin.publish({ provider: 'acme/d', version: '1.0.0' })
    origin.fault({ kind: 'archive', provider: 'acme/d' }, { status: 500 })
    expect((await mirror.archive('acme/d', '1.0.0', 'linux_amd64')).status).toBe(502)
    const [line] = await requestLines(mirror, 1)
    expect(line).toMatchObject({ level: 'warn', status: 502, err: { code: 'UPSTREAM_STATUS', upstreamStatus: 500 } })
  })
})
