import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Client,
  type ClientConfigurationOptions,
  formatClientConfiguration,
} from '../../src/protocol/client-configuration.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, HOST, requestsSeen, requireWidget } from './mirror-workspace.ts'
import { CURRENT_PLATFORM, hostConfig, terraformAvailable } from './terraform-cli.ts'

const PORTED = 'ported.example.test:8443'
const OUTSIDE = 'outside.example.test'
/** The text for OpenTofu is valid for Terraform too: the one option that it does not know is ignored there. */
const CLIENTS: readonly Client[] = ['terraform', 'tofu']

const stack = new AsyncDisposableStack()
let origin: TestOrigin
let outside: TestOrigin
let mirror: TestMirror

beforeAll(async () => {
  origin = stack.use(await startOrigin({ hosts: [HOST, PORTED] }))
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  await origin.publish({ provider: `${PORTED}/acme/ported`, version: '1.0.0' })
  outside = stack.use(await startOrigin({ hosts: [OUTSIDE] }))
  await outside.publish({ provider: 'corp/secret', version: '0.1.0' })
  mirror = stack.use(await startMirror({ origin }))
})
afterAll(() => stack.disposeAsync())

function print(client: Client, form: Pick<ClientConfigurationOptions, 'door' | 'direct'>, served: string[]): string {
  // As if registry.opentofu.org were served too, so that what is printed for it is tried.
  const origins = [...served, 'registry.opentofu.org', '*.corp.example']
  return formatClientConfiguration({ ...form, client, baseUrl: mirror.url, origins })
}

const widget = `${HOST}/acme/widget/1.0.0/${CURRENT_PLATFORM}`
const secret = `${OUTSIDE}/corp/secret/0.1.0/${CURRENT_PLATFORM}`
const ported = `${PORTED}/acme/ported/1.0.0/${CURRENT_PLATFORM}`

describe.skipIf(terraformAvailable() === undefined)('the real terraform takes what client-config prints', () => {
  test.each(CLIENTS)('for %s: the network mirror alone', async (client) => {
    const cliConfig = print(client, { door: 'mirror', direct: false }, [HOST])
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(run.output).not.toMatch(/Warning: .*CLI config/i)
    expect(await terraform.installed()).toEqual([widget])
  })

  test.each(CLIENTS)('for %s: with direct, which is asked for nothing that the mirror serves', async (client) => {
    const seen = requestsSeen(mirror).length
    // The CLI cannot be told an address for a host, so a host block stands in for the discovery of the outside one.
    // That of the served host leads nowhere: had it been asked directly, init would fail.
    const cliConfig =
      print(client, { door: 'mirror', direct: true }, [HOST, PORTED]) +
      hostConfig(OUTSIDE, outside.services()) +
      hostConfig(HOST, { 'providers.v1': 'https://127.0.0.1:1/' })
    const providers = { ...requireWidget(), secret: { source: `${OUTSIDE}/corp/secret` } }
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig, providers, caPem: outside.caPem })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([secret, widget])
    await expect.poll(() => requestsSeen(mirror).length).toBeGreaterThan(seen)
  })

  test('with direct: a provider of a host with a port, which no network mirror can be asked for, is fetched directly', async () => {
    const cliConfig =
      print('terraform', { door: 'mirror', direct: true }, [HOST, PORTED]) + hostConfig(PORTED, origin.services(PORTED))
    const providers = { ...requireWidget(), ported: { source: `${PORTED}/acme/ported` } }
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig, providers, caPem: origin.caPem })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([ported, widget])
  })

  test.for(
    CLIENTS.flatMap((client) => [
      { client, door: 'host', direct: false } as const,
      { client, door: 'both', direct: false } as const,
      { client, door: 'both', direct: true } as const,
    ]),
  )('for $client: door $door, direct $direct, also for a host with a port', async ({ client, ...form }, context) => {
    const { status } = await mirror.ask(`/v1/providers/${HOST}/acme/widget/versions`)
    if (status === 404) console.warn('SKIPPED: this mirror has no provider registry door; host blocks are not tried')
    context.skip(status === 404)
    const cliConfig = print(client, form, [HOST, PORTED])
    const providers = { ...requireWidget(), ported: { source: `${PORTED}/acme/ported` } }
    await using terraform = await createMirrorWorkspace(mirror, { cliConfig, providers })
    const run = await terraform.run(['init'])
    expect(run.code, run.output).toBe(0)
    expect(await terraform.installed()).toEqual([ported, widget])
    if (form.door === 'host') expect(run.output).toContain(`self-signed, key ID ${origin.key.keyId}`)
  })
})
