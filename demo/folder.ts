import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { networkMirrorConfig } from '../test/e2e/terraform-cli.ts'
import { CONFIGURATION_FILE, LOCK_FILE, type Requirement } from './client.ts'
import type { OriginFacts } from './origin-process.ts'

/** The temporary folder with everything that the demo makes. Disposing of it removes it. */
export class DemoFolder implements AsyncDisposable {
  readonly path: string
  /** What commands call the folder. */
  readonly variable = '$demo'

  private constructor(path: string) {
    this.path = path
  }

  static async create(): Promise<DemoFolder> {
    const folder = new DemoFolder(await mkdtemp(join(tmpdir(), 'terramirror-demo-')))
    for (const name of ['home', 'tmp']) await mkdir(join(folder.path, name))
    return folder
  }

  get dataDir(): string {
    return join(this.path, 'data')
  }

  /** For every process of the demo: nothing of the user's own settings but the path to programs. */
  get env(): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      HOME: join(this.path, 'home'),
      TMPDIR: join(this.path, 'tmp'),
      CHECKPOINT_DISABLE: '1',
      // Go reads the folders of the system beside SSL_CERT_FILE; here the client trusts what that names alone.
      SSL_CERT_DIR: join(this.path, 'home'),
    }
  }

  /** A path as the shown commands write it. */
  readonly shorten = (path: string): string => path.replace(this.path, this.variable)

  /** Writes the mirror's configuration; its path. */
  async writeMirrorConfig({ host, address, caPem }: OriginFacts): Promise<string> {
    await writeFile(join(this.path, 'origin-ca.pem'), caPem)
    return this.#write(
      'mirror.yaml',
      stringify({
        listen: { port: 0, tls: 'auto' },
        dataDir: './data',
        // New versions shall be seen at once here; five minutes is usual.
        freshness: { versions: '1s' },
        log: { format: 'json' },
        origins: { [host]: { address, caFile: './origin-ca.pem' } },
      }),
    )
  }

  /** Writes the CLI's configuration; its path. */
  writeCliConfig(mirrorUrl: string): Promise<string> {
    return this.#write('cli.tfrc', networkMirrorConfig(mirrorUrl))
  }

  /** Makes a folder with a configuration that requires these providers; its path. */
  async writeConfiguration(name: string, requirements: readonly Requirement[]): Promise<string> {
    const lines = requirements.map(
      ({ name, source, version }) => `    ${name} = { source = "${source}", version = "${version}" }\n`,
    )
    await mkdir(join(this.path, name))
    await this.#write(join(name, CONFIGURATION_FILE), `terraform {\n  required_providers {\n${lines.join('')}  }\n}\n`)
    return join(this.path, name)
  }

  /** Makes another folder with the configuration and the lock file of `from`, and nothing else; its path. */
  async cloneConfiguration(from: string, name: string): Promise<string> {
    const to = join(this.path, name)
    await mkdir(to)
    for (const file of [CONFIGURATION_FILE, LOCK_FILE]) await cp(join(from, file), join(to, file))
    return to
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }

  async #write(name: string, text: string): Promise<string> {
    const path = join(this.path, name)
    await writeFile(path, text)
    return path
  }
}
