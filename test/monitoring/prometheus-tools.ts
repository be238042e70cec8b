import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import { stringify } from 'yaml'
import { makeTempFolder } from '../store/temp-folder.ts'

/** `deploy/monitoring` of the project. */
export const MONITORING = fileURLToPath(new URL('../../deploy/monitoring', import.meta.url))

/** Kept from run to run: the package is 19 MB. */
const CACHE = '/var/tmp/terramirror-test-prometheus'

/** The two programs of Prometheus. */
interface Tools {
  readonly prometheus: string
  readonly promtool: string
}

const tools = findTools()
if (tools === undefined) {
  console.warn('SKIPPED: prometheus and promtool are not there (Debian: prometheus); rules and queries are not checked')
}

/** A suite that needs them; skipped, loudly, where they cannot be had. */
export const describePrometheus: typeof describe.skip = tools === undefined ? describe.skip : describe

/** What promtool says, and whether all is well. */
export function promtool(args: readonly string[], options: { cwd?: string; input?: string } = {}) {
  const { status, stdout, stderr } = spawnSync(tools?.promtool ?? '', args, { ...options, encoding: 'utf8' })
  return { ok: status === 0, text: stdout + stderr }
}

/** One result of an instant query. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** A running Prometheus on loopback. */
export interface TestPrometheus extends AsyncDisposable {
  /** Evaluates an expression now. @throws Error with what Prometheus says, if it cannot be evaluated */
  query(expression: string): Promise<readonly Sample[]>
  /** Any other document of its API below `/api/v1/`. */
  // biome-ignore lint/suspicious/noExplicitAny: documents of another program
  get(path: string): Promise<any>
}

/** Starts Prometheus with our rules and this scrape job, that is asked every second. */
export async function startPrometheus(job: Record<string, unknown>): Promise<TestPrometheus> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await makeTempFolder()).path
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(MONITORING, 'terramirror.rules.yaml')],
    scrape_configs: [job],
  }
  await writeFile(join(folder, 'prometheus.yml'), stringify(config))
  const port = await freePort()
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const child = spawn(tools?.prometheus ?? '', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  stack.defer(() => stop(child))
  let log = ''
  child.stderr.on('data', (text) => {
    log += text
  })
  const base = `http://127.0.0.1:${port}`
  for (let tries = 0; !(await isReady(base)); tries++) {
    if (tries > 600 || child.exitCode !== null) throw new Error(`prometheus did not start:\n${log}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const resources = stack.move()
  const get: TestPrometheus['get'] = async (path) => {
    const answer = await (await fetch(`${base}/api/v1/${path}`)).json()
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`)
    return answer.data
  }
  return {
    get,
    async query(expression) {
      const data = await get(`query?query=${encodeURIComponent(expression)}`)
      if (data.resultType !== 'vector') throw new Error(`${expression} is not a vector`)
      return data.result.map(({ metric, value }: { metric: Sample['metric']; value: [number, string] }) => ({
        metric,
        value: Number(value[1]),
      }))
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

async function isReady(base: string): Promise<boolean> {
  return fetch(`${base}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

function findTools(): Tools | undefined {
  const folders = [...(process.env.PATH ?? '').split(':'), join(CACHE, 'usr/bin')]
  return findIn(folders) ?? (download() ? findIn(folders) : undefined)
}

function findIn(folders: readonly string[]): Tools | undefined {
  const folder = folders.find((each) => existsSync(join(each, 'promtool')) && existsSync(join(each, 'prometheus')))
  if (folder === undefined) return undefined
  return { prometheus: join(folder, 'prometheus'), promtool: join(folder, 'promtool') }
}

/** Unpacks Debian's package without installing it: that would start a service. */
function download(): boolean {
  const folder = mkdtempSync(`${CACHE}-`)
  try {
    const options = { cwd: folder, timeout: 120_000, stdio: 'ignore' } as const
    if (spawnSync('apt-get', ['download', 'prometheus'], options).status !== 0) return false
    const [file] = readdirSync(folder)
    if (file === undefined || spawnSync('dpkg', ['-x', file, 'tree'], options).status !== 0) return false
    mkdirSync(join(folder, 'kept/usr/bin'), { recursive: true })
    for (const name of ['prometheus', 'promtool']) {
      cpSync(join(folder, 'tree/usr/bin', name), join(folder, 'kept/usr/bin', name))
    }
    // Another worker may have been faster.
    if (!existsSync(CACHE)) renameSync(join(folder, 'kept'), CACHE)
    return true
  } catch {
    return existsSync(CACHE)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
