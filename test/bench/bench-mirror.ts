import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { HOST } from './origin-files.ts'
import { Service } from './service.ts'
import type { CertificateFiles, OriginPorts } from './stage.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** How a mirror of the benchmark differs from the usual one. */
export interface MirrorSettings {
  readonly tls: boolean
  /** Whether every request is logged. */
  readonly accessLog?: boolean
  /** The throttled origin instead of the fast one. */
  readonly slow?: boolean
  /** The origin over plain HTTP, as operators can allow it. */
  readonly plainOrigin?: boolean
  /** Of archives that are being fetched; default as without a configuration. */
  readonly delivery?: 'verified' | 'progressive'
  /** The cores that it may use; default all. */
  readonly cpu?: string
  /** A data folder that exists; default a new one. */
  readonly dataDir?: string
  /** Instead of the program that `npm start` starts. */
  readonly main?: string
  readonly env?: NodeJS.ProcessEnv
}

/** A mirror as `npm start` starts it, but for its port and where it logs. */
export interface BenchMirror extends AsyncDisposable {
  readonly service: Service
  readonly url: string
  readonly port: number
  readonly dataDir: string
  /** From the start of the process to the line that says that it serves, in ms. */
  readonly readyMs: number
  /** URL of a path below `/providers/HOST/`. */
  at(path: string): string
}

/** The command of `npm start`, or the same with another program. */
function startCommand(main?: string): [string, ...string[]] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  const [node, ...args] = scripts.start.replace(/^exec /, '').split(' ')
  if (node !== 'node') throw new Error(`npm start does not start node: ${scripts.start}`)
  return [process.execPath, ...args.map((arg) => (main !== undefined && arg.endsWith('.js') ? main : arg))]
}

function originSettings(origin: OriginPorts, { slow, plainOrigin }: MirrorSettings, caFile: string): object {
  if (!plainOrigin) return { address: `127.0.0.1:${slow ? origin.slow : origin.fast}`, caFile }
  const registry = `http://127.0.0.1:${slow ? origin.slowPlain : origin.fastPlain}/v1/providers/`
  return { services: { 'providers.v1': registry }, allowHttp: true, allowPrivateAddresses: true }
}

/** Starts it. The caller disposes of it. @throws Error with its log if it does not serve */
export async function startBenchMirror(parts: {
  folder: string
  certificate: CertificateFiles
  origin: OriginPorts
  settings: MirrorSettings
}): Promise<BenchMirror> {
  const { folder, certificate, origin, settings } = parts
  const { certFile, keyFile, caFile } = certificate
  await mkdir(folder, { recursive: true })
  const dataDir = settings.dataDir ?? join(folder, 'data')
  const configFile = join(folder, 'config.yaml')
  const config = {
    listen: { port: 0, tls: settings.tls ? { certFile, keyFile } : 'off' },
    dataDir,
    stateDir: join(folder, 'state'),
    origins: { [HOST]: originSettings(origin, settings, caFile) },
    ...(settings.delivery === undefined ? {} : { archives: { delivery: settings.delivery } }),
    log: { level: settings.accessLog ? 'info' : 'warn', format: 'json' },
  }
  await writeFile(configFile, stringify(config))
  const logFile = join(folder, 'log')
  const [node, ...args] = startCommand(settings.main)
  const startedAt = performance.now()
  const service = new Service({
    command: [node, ...args, '--config', configFile],
    logFile,
    cwd: ROOT,
    env: { PATH: process.env.PATH, ...settings.env },
    ...(settings.cpu === undefined ? {} : { cpu: settings.cpu }),
  })
  try {
    const [, url = '', port = ''] = await service.line(/^at (https?:\/\/\S+:(\d+)\/)providers\/$/m)
    const readyMs = performance.now() - startedAt
    return {
      ...{ service, url, port: Number(port), dataDir, readyMs },
      at: (path) => `${url}providers/${HOST}/${path}`,
      [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
    }
  } catch (error) {
    await service[Symbol.asyncDispose]()
    throw new Error(readFileSync(logFile, 'utf8'), { cause: error })
  }
}
