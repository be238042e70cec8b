import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'

let origin: TestOrigin
let mirror: TestMirror
let instanceId: string

beforeAll(async () => {
  origin = await startOrigin()
  await origin.publish({ provider: 'acme/widget', version: '1.0.0' })
  await origin.publish({ provider: 'acme/gadget', version: '1.0.0' })
  mirror = await startMirror({ origin })
  await mirror.index('acme/widget')
  instanceId = hopsSeen()[0] ?? ''
})
beforeEach(() => origin.reset())
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

function hopsSeen(): string[] {
  return origin.requests.map(({ headers }) => String(headers['terramirror-hops']))
}

test('a mirror names itself to its origins, after those that the request has passed', async () => {
  expect(instanceId).toMatch(/^[0-9a-f-]{36}$/)
  const headers = { 'Terramirror-Hops': 'first, second' }
  expect((await mirror.archive('acme/gadget', '1.0.0', 'linux_amd64', { headers })).status).toBe(200)
  expect(origin.requests.length).toBeGreaterThan(5)
  expect(new Set(hopsSeen())).toEqual(new Set([`first, second, ${instanceId}`]))
})

test.each([
  '/providers/registry.example.test/acme/other/index.json',
  '/providers/registry.example.test/acme/other/1.0.0.json',
  '/providers/registry.example.test/acme/other/1.0.0/linux_amd64/other.zip',
  '/v1/providers/registry.example.test/acme/other/versions',
  '/v1/providers/registry.example.test/acme/other/1.0.0/download/linux/amd64',
  '/v1/providers/registry.example.test/acme/other/1.0.0/archives/linux_amd64/other.zip',
  `/v1/providers/registry.example.test/acme/other/1.0.0/checksums/${'0'.repeat(64)}/SHA256SUMS`,
])(
  'a request that was here before is refused and asks nobody: mirrors never ask each other in a circle (%s)',
  async (path) => {
    const answer = await mirror.ask(path, { headers: { 'Terramirror-Hops': `other, ${instanceId}, third` } })
    expect(answer.status).toBe(508)
    expect(answer.json()).toMatchObject({ code: 'MIRROR_LOOP' })
    expect(answer.json().error).toContain(`other -> ${instanceId} -> third`)
    expect(origin.requests).toEqual([])
  },
)

test('a header that is no list of names does no harm', async () => {
  const headers = { 'Terramirror-Hops': `${'x'.repeat(5_000)}, ;;, <script>` }
  expect((await mirror.index('acme/widget', { headers })).status).toBe(200)
})
