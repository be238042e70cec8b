import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { CURRENT_PLATFORM, terraformAvailable } from '../e2e/terraform-cli.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { makeTempFolder } from '../store/temp-folder.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOT_CLONED = ['node_modules', 'data', 'dist', '.git', 'test', 'coverage', 'config.yaml']
const page = readFileSync(join(ROOT, 'docs', 'quick-start.md'), 'utf8')
const commands = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
const [start = '', project = '', client = '', look = '', startSealed = '', again = ''] = commands

/** A clone with its packages, a free port in place of 8443, and a test origin that plays registry.terraform.io. */
interface Place {
  readonly clone: string
  readonly home: string
  readonly port: number
}

test.skipIf(terraformAvailable() === undefined)(
  'docs/quick-start.md does what it says, command by command',
  async () => {
    expect(commands).toHaveLength(6)
    expect(start).toBe('npm ci && npm start\n')
    await using origin = await startOrigin({ hosts: ['registry.terraform.io'] })
    await origin.publish({ provider: 'hashicorp/null', version: '3.2.4' })
    await using folder = await makeTempFolder()
    const place = await clone(folder.path, origin)
    // What follows in one terminal is one shell: variables and folder stay.
    const terminal = adapt(`${project}\n${client}`, place)
    {
      await using _ = await startMirror('npm start', place)
      const first = await run(terminal, place)
      expect(first.output).toMatch(/Installed hashicorp\/null v3\.2\.4 \(verified checksum\)/)
      expect(await run(adapt(look, place), place)).toEqual({ code: 0, output: '{"versions":{"3.2.4":{}}}' })
    }
    await origin.stop()
    {
      await using _ = await startMirror(startSealed.trim(), place)
      const second = await run(`${terminal.replace('terraform init', '')}\n${again}`, place)
      expect(second.output).toContain('Terraform has been successfully initialized')
      expect(second.output).toContain('Installed hashicorp/null v3.2.4')
    }
    expect(origin.count(`archive hashicorp/null 3.2.4 ${CURRENT_PLATFORM}`)).toBe(1)
  },
  120_000,
)

async function clone(folder: string, origin: TestOrigin): Promise<Place> {
  const place = { clone: join(folder, 'terramirror'), home: join(folder, 'home'), port: await freePort() }
  await mkdir(place.home)
  const wanted = (source: string) => source === ROOT || !NOT_CLONED.includes(basename(source))
  await cp(ROOT, place.clone, { recursive: true, filter: wanted })
  await symlink(join(ROOT, 'node_modules'), join(place.clone, 'node_modules'))
  await writeFile(join(folder, 'origin-ca.pem'), origin.caPem)
  const registry = { address: origin.address, caFile: join(folder, 'origin-ca.pem') }
  const config = {
    listen: { port: place.port },
    admin: { listen: { port: 0 } },
    origins: { 'registry.terraform.io': registry },
  }
  await writeFile(join(place.clone, 'config.yaml'), stringify(config))
  return place
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

function adapt(command: string, { clone, port }: Place): string {
  return command.replaceAll('8443', String(port)).replaceAll('/path/to/terramirror', clone)
}

function environment({ home }: Place): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, CHECKPOINT_DISABLE: '1' }
}

/** Runs a command in the clone until the mirror serves; disposing is Ctrl-C. */
async function startMirror(command: string, place: Place): Promise<AsyncDisposable> {
  const child = spawn('bash', ['-c', command], {
    cwd: place.clone,
    env: environment(place),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit')
  let output = ''
  const serving = new Promise<void>((resolve) => {
    const read = (chunk: Buffer) => {
      output += chunk
      if (/^at https:.*\/providers\/$/m.test(output)) resolve()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
  })
  await Promise.race([
    serving,
    ended.then(([code]) => Promise.reject(new Error(`${command} ended with ${code}: ${output}`))),
  ])
  return {
    async [Symbol.asyncDispose]() {
      // As a terminal does: to all processes of the job.
      process.kill(-(child.pid ?? 0), 'SIGINT')
      await ended
    },
  }
}

async function run(script: string, place: Place): Promise<{ code: number; output: string }> {
  const child = spawn('bash', ['-e', '-c', script], {
    cwd: place.home,
    env: environment(place),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  })
  const ended = once(child, 'close')
  const output = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await ended
  return { code: code ?? -1, output: output.join('') }
}
