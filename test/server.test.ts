import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../src/config/load.ts'
import { silentLog } from '../src/log.ts'
import { type RunningServer, startServer } from '../src/server.ts'
import { failureOf } from './mirror/parts-fixture.ts'
import { makeTempFolder } from './store/temp-folder.ts'

let stack: AsyncDisposableStack
let folder: string

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  folder = stack.use(await makeTempFolder()).path
})
afterEach(() => stack.disposeAsync())

/** Over plain HTTP, and without origins that could be asked. */
async function start(settings: { listen?: object } & Record<string, unknown> = {}): Promise<RunningServer> {
  const { listen, ...rest } = settings
  const file = join(folder, 'config.yaml')
  await writeFile(file, stringify({ mode: 'sealed', ...rest, listen: { port: 0, tls: 'off', ...listen } }))
  const config = await loadConfig({ file, set: [], cwd: folder, env: {} })
  const server = await startServer({ config, version: '0.0.0-test', log: silentLog() })
  stack.defer(() => server.close(0))
  return server
}

async function ask(port: number, path: string, agent?: Agent): Promise<{ status: number; text: string }> {
  const [response] = (await once(get({ host: '127.0.0.1', port, path, agent }), 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response) text += piece
  return { status: response.statusCode ?? 0, text }
}

describe('a server', () => {
  it('is ready when it has started, and tells where it is', async () => {
    const server = await start()
    expect(server).toMatchObject({
      url: `http://localhost:${server.port}/`,
      caFile: undefined,
      caBundleFile: undefined,
    })
    expect(await ask(server.port, '/readyz')).toEqual({ status: 200, text: '{"status":"ready"}' })
  })

  it('tells the address that the operator gave instead', async () => {
    const publicUrl = 'https://mirror.example.com/behind/'
    const server = await start({ publicUrl })
    expect(server.url).toBe(publicUrl)
    expect(JSON.parse((await ask(server.port, '/nothing')).text)).toMatchObject({
      code: 'ROUTE_NOT_FOUND',
      base_url: 'https://mirror.example.com/behind/providers/',
    })
    const { text } = await ask(server.port, '/')
    expect(text).toContain('url = &quot;https://mirror.example.com/behind/providers/&quot;')
    expect(text).not.toContain(`127.0.0.1:${server.port}`)
  })

  it('says to who misses the base path how this very mirror is reached', async () => {
    const { port } = await start()
    const { status, text } = await ask(port, '/registry.terraform.io/hashicorp/aws/index.json')
    expect(status).toBe(404)
    expect(JSON.parse(text)).toMatchObject({
      code: 'ROUTE_NOT_FOUND',
      base_url: `https://127.0.0.1:${port}/providers/`,
    })
  })

  it('has one folder to itself: a second one is refused, and takes nothing from the first', async () => {
    const first = await start()
    expect(await failureOf(start())).toMatchObject({ code: 'CONFIGURATION' })
    expect((await ask(first.port, '/readyz')).status).toBe(200)
  })
})

describe('a server that cannot start', () => {
  const certificate = { certFile: './missing.pem', keyFile: './missing.pem' }
  it.each([
    ['its port is taken', async () => ({ listen: { port: await takenPort() } })],
    ['its certificate cannot be read', async () => ({ listen: { tls: certificate } })],
    ['an authority cannot be read', async () => ({ mode: 'online', upstream: { caFile: './missing.pem' } })],
  ])('because %s says so, and leaves its folder to the next one', async (_, settings) => {
    expect(await failureOf(start(await settings()))).toMatchObject({ code: 'CONFIGURATION' })
    expect((await ask((await start()).port, '/readyz')).status).toBe(200)
  })

  async function takenPort(): Promise<number> {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    stack.defer(() => void other.close())
    return (other.address() as AddressInfo).port
  }
})

describe('closing', () => {
  it('may be asked for twice, ends all, and leaves the folder to the next one', async () => {
    const server = await start()
    const closing = server.close(1_000)
    expect(server.close(1_000)).toBe(closing)
    await closing
    expect(await failureOf(ask(server.port, '/readyz'))).toMatchObject({ code: 'ECONNREFUSED' })
    await start()
  })

  it('does not wait for connections that are only kept', async () => {
    const server = await start()
    const agent = new Agent({ keepAlive: true })
    stack.defer(() => agent.destroy())
    await ask(server.port, '/readyz', agent)
    const startedAt = performance.now()
    await server.close(60_000)
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })
})
