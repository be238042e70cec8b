import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { type ExaminationOptions, examine } from '../../src/doctor/examination.ts'
import type { Finding } from '../../src/doctor/finding.ts'
import type { TestOrigin } from '../origin/origin.ts'

/** A folder with the configuration of a mirror, which may run or not. */
export interface Patient extends AsyncDisposable {
  readonly folder: string
  /** Writes a file below the folder; its path. */
  write(name: string, text: string, mode?: number): Promise<string>
  examine(options?: Partial<ExaminationOptions>): Promise<Findings>
}

/** Findings as lines: `problem data folder: TEXT REMEDY`. */
export class Findings {
  readonly all: readonly Finding[]

  constructor(all: readonly Finding[]) {
    this.all = all
  }

  /** All lines that begin so, one below the other. */
  about(start: string): string {
    return this.lines.filter((line) => line.startsWith(start)).join('\n')
  }

  get lines(): string[] {
    return this.all.map(({ check, verdict, text, remedy }) => `${verdict} ${check}: ${text} ${remedy ?? ''}`.trim())
  }

  /** Those that say more than that something is well, or was not looked at. */
  get complaints(): string[] {
    return this.lines.filter((line) => /^(problem|warning)/.test(line))
  }
}

/** More of the configuration, by its keys. */
export type More = Record<string, unknown> & { origins?: Record<string, unknown> }

/** A fresh folder with a configuration that is well, but for `more`. The origin is reached without any DNS. */
export async function createPatient(origin: TestOrigin, more: More = {}): Promise<Patient> {
  const folder = await mkdtemp(join(tmpdir(), 'test-doctor-'))
  const write = async (name: string, text: string, mode = 0o600) => {
    const path = join(folder, name)
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, text, { mode })
    return path
  }
  await write('origin-ca.pem', origin.caPem)
  const [host = ''] = origin.hosts
  const base = {
    listen: { port: await freePort() },
    admin: 'off',
    // Else it matters how full the machine's disk is.
    archives: { maxSize: '100MB' },
    defaultOrigin: host,
    origins: { [host]: { address: origin.address, caFile: './origin-ca.pem' } },
  }
  await write('config.yaml', stringify({ ...base, ...more }))
  return {
    folder,
    write,
    async examine(options) {
      const usual = { file: join(folder, 'config.yaml'), set: [], cwd: folder, env: {}, isOffline: false }
      return new Findings(await examine({ ...usual, providers: [`${host}/acme/widget`], ...options }))
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
