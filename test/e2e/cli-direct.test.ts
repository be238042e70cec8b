import { describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, errorsLogged, HOST, requireWidget } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, hostConfig, networkMirrorConfig, terraformAvailable } from './terraform-cli.ts'

const OUTSIDE = 'outside.example.test'
const widget100 = `${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`
const widget110 = `${HOST}/acme/widget/1.1.0/${CURRENT_PLATFORM}`

describe.skipIf(terraformAvailable() === undefined)('terraform with the mirror and direct beside it (B01)', () => {
  test('a version that the mirror has not fetched yet installs through the mirror', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })
    await using mirror = await startMirror({ origin })
    await using warm = await createMirrorWorkspace(mirror, { version: '1.0.0' })
    await warm.run(['init'])
    origin.reset()

    await using terraform = await besideDirect(mirror, origin, { version: '1.1.0' })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain('verified checksum')
    expect(await terraform.installed()).toEqual([widget110])
    expect(origin.count('archive acme/widget 1.1.0')).toBe(1)
  })

  test('a version younger than the list that the mirror holds installs through the mirror', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await mirror.index('acme/widget')
    await origin.publish({ provider: 'acme/widget', version: '1.1.0' })

    await using terraform = await besideDirect(mirror, origin, { version: '1.1.0' })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain('verified checksum')
    expect(await terraform.installed()).toEqual([widget110])
  })

  test("a version that the mirror's origin does not have is fetched by direct", async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using other = await startOrigin()
    await other.publish({ provider: 'acme/widget', version: '1.1.0' })
    await using mirror = await startMirror({ origin })

    await using terraform = await besideDirect(mirror, other)
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).toContain(`self-signed, key ID ${other.key.keyId}`)
    expect(await terraform.installed()).toEqual([widget110])
    expect(origin.count('archive')).toBe(0)
  })

  test('a provider that the origin of the mirror does not have is fetched by direct', async () => {
    await using origin = await startOrigin()
    await using other = await startOrigin()
    await other.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })

    await using terraform = await besideDirect(mirror, other)
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([widget100])
  })

  test('a host that the mirror does not allow is fetched by direct, beside one that it does', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using outside = await startOrigin({ hosts: [OUTSIDE] })
    await outside.publish({ provider: 'corp/secret', version: '0.1.0' })
    await using mirror = await startMirror({ origin })

    await using terraform = await createMirrorWorkspace(mirror, {
      providers: { ...requireWidget(), secret: { source: `${OUTSIDE}/corp/secret` } },
      cliConfig:
        networkMirrorConfig(mirror.baseUrl, { direct: true }) +
        hostConfig(HOST, origin.services()) +
        hostConfig(OUTSIDE, outside.services()),
      caPem: `${origin.caPem}\n${outside.caPem}`,
    })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([`${OUTSIDE}/corp/secret/0.1.0/${CURRENT_PLATFORM}`, widget100])
    expect(outside.count('archive')).toBe(1)
    expect(origin.count('archive')).toBe(1)
    await expect.poll(() => errorsLogged(mirror)).toContain('ORIGIN_NOT_ALLOWED')
  })

  test('a platform that the mirror cannot vouch for is fetched by direct, others are not', async () => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0', platforms: ['plan9_386'] })
    await using other = await startOrigin()
    await other.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })

    await using terraform = await besideDirect(mirror, other)
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(other.count('archive acme/widget 1.0.0')).toBe(1)
  })

  test('while the origin of the mirror is away, init fails with a reason and never slips past to direct', async () => {
    await using origin = await startOrigin()
    await using other = await startOrigin()
    await other.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config: { upstream: { retries: 0 } } })
    await origin.stop()

    await using terraform = await besideDirect(mirror, other)
    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toMatch(/unsuccessful request to .*index\.json.*502|502 Bad Gateway/)
    expect(await terraform.installed()).toEqual([])
    expect(other.count('archive')).toBe(0)
    await expect
      .poll(() => errorsLogged(mirror))
      .toMatch(/UPSTREAM_UNREACHABLE: .*registry\.example\.test.*ECONNREFUSED/)
  })

  test.each([
    ['sums', { kind: 'sums', provider: 'acme/widget' }],
    ['download documents', { kind: 'download', provider: 'acme/widget' }],
    ['archives', { kind: 'archive', provider: 'acme/widget' }],
  ] as const)('while the origin fails for %s only, nothing slips past to direct either', async (_, matcher) => {
    await using origin = await startOrigin()
    await using other = await startOrigin()
    for (const each of [origin, other]) await each.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin, config: { upstream: { retries: 0 } } })
    origin.fault(matcher, { status: 503, body: 'maintenance' })

    await using terraform = await besideDirect(mirror, other)
    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toMatch(/\b502\b/)
    expect(await terraform.installed()).toEqual([])
    expect(other.count('archive')).toBe(0)
    await expect.poll(() => errorsLogged(mirror)).toMatch(/UPSTREAM_STATUS: .*503/)
  })
})

describe.skipIf(terraformAvailable() === undefined)('terraform with a base URL that is not quite right (B03)', () => {
  test.each([
    ['without the slash at its end', 'providers'],
    ['without its path', ''],
    ['with another path', 'v1/providers/'],
  ])('%s: the client is told that nothing was found, the log names the right one', async (_, path) => {
    await using origin = await startOrigin()
    await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
    await using mirror = await startMirror({ origin })
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig: networkMirrorConfig(mirror.url + path) })

    const run = await terraform.run(['init'])
    expect(run.code).toBe(1)
    expect(run.output).toContain('was not found in any of the search locations')
    expect(origin.requests).toEqual([])
    await expect.poll(() => errorsLogged(mirror)).toContain(`ROUTE_NOT_FOUND`)
    await expect.poll(() => errorsLogged(mirror)).toContain(`url = "${mirror.baseUrl}"`)
  })

  test.each([
    `/${HOST}/acme/widget/index.json`,
    `/${HOST}/acme/widget/1.0.0.json`,
    `/v1/providers/${HOST}/index.json`,
    `/v1/providers/${HOST}/acme/widget/index.json`,
  ])('%s is a 404 that names the right base URL', async (path) => {
    await using origin = await startOrigin()
    await using mirror = await startMirror({ origin })
    const answer = await mirror.ask(path)
    expect(answer.status).toBe(404)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.json()).toMatchObject({
      code: 'ROUTE_NOT_FOUND',
      base_url: mirror.baseUrl,
      error: expect.stringContaining(`network_mirror { url = "${mirror.baseUrl}" }`),
    })
    await expect.poll(() => mirror.logLines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })
})

test.each([
  '/v1/providers/acme/widget/versions',
  '/v1/providers/acme/widget/1.0.0/download/linux/amd64',
  `/providers/${HOST}/acme/widget/versions`,
])('%s, which speaks the registry protocol beside its base URL, is told that base URL', async (path) => {
  await using origin = await startOrigin()
  await using mirror = await startMirror({ origin })
  const answer = await mirror.ask(path)
  expect([answer.status, answer.json().code]).toEqual([404, 'ROUTE_NOT_FOUND'])
  expect(answer.json().base_url).toBe(`${mirror.url}v1/providers/REGISTRY/`)
  expect(answer.json().error).toContain('host "REGISTRY" { services = { "providers.v1" = ')
})

/**
 * A workspace whose CLI has the mirror first and, by a `direct` block, `origin` itself beside it. The CLI cannot be told
 * an address for a host, so a `host` block leads it there.
 */
function besideDirect(mirror: TestMirror, origin: TestOrigin, { version }: { version?: string } = {}) {
  return createMirrorWorkspace(mirror, {
    ...(version === undefined ? {} : { version }),
    cliConfig: networkMirrorConfig(mirror.baseUrl, { direct: true }) + hostConfig(HOST, origin.services()),
    caPem: origin.caPem,
  })
}
