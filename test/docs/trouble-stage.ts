import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { MirrorError } from '../../src/errors.ts'
import type { BlobStore } from '../../src/store/blob-store.ts'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { askModule, type ModuleCall, moduleCalls, recommendedConfig } from '../e2e/module-door.ts'
import { createWorkspace, networkMirrorConfig } from '../e2e/terraform-cli.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { zipArchive } from '../origin/provider-archive.ts'
import { fileReply } from '../origin/reply.ts'
import { makeTempFolder } from '../store/temp-folder.ts'
import { createTestAuthority, type TestAuthority } from '../tls-fixture.ts'

/** The registry that the page's examples are about. */
export const HOST = 'registry.acme.example'
/** A registry of the same server that wants a token, which the mirror does not have. */
export const PRIVATE_HOST = 'private.acme.example'
/** A registry of the same server, for what would put all requests to a host on hold. */
export const LIMITED_HOST = 'limited.acme.example'
/** A registry whose certificate nobody vouches for. */
export const UNTRUSTED_HOST = 'untrusted.acme.example'

/** A module with the versions 1.0.0 and 1.1.0. The sealed mirror holds the first, and nothing else. */
export const SEALED_MODULE = `${HOST}/acme/module-sealed/aws`

const DAY_MS = 86_400_000

/** All that goes wrong on one stage: an origin, mirrors of it, and servers that stand in the way. */
export interface Stage extends AsyncDisposable {
  readonly origin: TestOrigin
  readonly mirror: TestMirror
  /** Sealed, and empty but for a version of `SEALED_MODULE`. */
  readonly sealed: TestMirror
  /** No archive fits on its disk. */
  readonly full: TestMirror
  /** Plain http; and it asks the origin each time. */
  readonly plain: TestMirror
  /** Base URLs of servers that are no mirror, by what is wrong with them. */
  readonly imposters: Record<Imposter, string>
  /** What clients must trust to get past TLS, wherever they go. */
  readonly caPem: string
  /** For what a trouble opens: closed with the stage. */
  readonly opened: AsyncDisposableStack
  /** Everything that any of the mirrors logged, in the text format. */
  log(): string
}

/** What is wrong with a server in the mirror's place. */
export type Imposter = (typeof IMPOSTERS)[number]
const IMPOSTERS = [
  ...(['expired', 'notYetValid', 'otherName', 'hangsUp'] as const),
  ...(['html', 'plainText', 'login', 'forbidden', 'altered', 'silent', 'torn'] as const),
] as const

/** Opens everything. The caller disposes. */
export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack()
  const authority = await createTestAuthority()
  const origin = opened.use(
    await startOrigin({ authority, hosts: [HOST, PRIVATE_HOST, LIMITED_HOST], tokens: { [PRIVATE_HOST]: 'a-token' } }),
  )
  const start = async (config = {}, more = {}) => {
    const log = { format: 'text', level: 'info' }
    return opened.use(await startMirror({ origin, config: { log, upstream: { retries: 0 }, ...config }, ...more }))
  }
  const mirror = await start({ origins: { [UNTRUSTED_HOST]: { address: origin.address } } })
  const sealed = await start({ mode: 'sealed' }, { folder: await folderWithModule(opened, origin) })
  const full = await start({}, { wrapBlobs: withoutSpace })
  const plain = await start({ listen: { port: 0, tls: 'off' }, freshness: { versions: '0s' } })
  const imposters = {} as Record<Imposter, string>
  for (const imposter of IMPOSTERS) imposters[imposter] = await startImposter(imposter, { authority, opened })
  const mirrors = [mirror, sealed, full, plain]
  const resources = opened.move()
  return {
    ...{ origin, mirror, sealed, full, plain, imposters },
    opened: resources,
    caPem: [authority.caPem, ...mirrors.map(({ caPem }) => caPem)].join('\n'),
    log: () => mirrors.map(({ logText }) => logText).join(''),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/** Where the origin has the files of a module, as an archive. */
export const MODULE_FILES = '/files/module.zip'

/** The folder of a mirror that fetched `SEALED_MODULE`, and has ended. */
async function folderWithModule(opened: AsyncDisposableStack, origin: TestOrigin): Promise<string> {
  const { body, sha256 } = await zipArchive({ 'main.tf': Buffer.from('# a module\n') })
  origin.page(HOST, MODULE_FILES, fileReply(body, sha256))
  for (const version of ['1.0.0', '1.1.0']) {
    origin.publishModule({ module: SEALED_MODULE, version, location: MODULE_FILES })
  }
  const { path } = opened.use(await makeTempFolder())
  await using online = await startMirror({ origin, folder: path })
  await askModule(online, SEALED_MODULE, '1.0.0')
  return path
}

/** Puts one thing wrong, and gives what the client asks for then. */
export type Trouble = (stage: Stage, source: string) => Promise<Partial<ClientOptions>> | Partial<ClientOptions>

/** What a client asks for, and how; everything else is as in the quick start. */
export interface ClientOptions {
  readonly source: string
  /** Called instead of requiring the provider `source`, through a `host` block beside the network mirror. */
  readonly module?: ModuleCall
  readonly version?: string
  /** Base URL of the network mirror; default that of `stage.mirror`. */
  readonly url?: string
  /** Instead of a network mirror alone. */
  readonly cliConfig?: string
  /** Default: everything that is on the stage. */
  readonly caPem?: string
  readonly env?: Readonly<Record<string, string>>
  /** Text of a lock file to begin with. */
  readonly lockFile?: string
  /** Commands, one after the other; default `init`. */
  readonly commands?: readonly (readonly string[])[]
}

/** Runs the real CLI and gives all that it printed. */
export async function runClient(stage: Stage, options: ClientOptions): Promise<string> {
  const { source, module, version, url = stage.mirror.baseUrl, commands = [['init']] } = options
  const base = url.replace(/providers\/$/, '')
  await using workspace = await createWorkspace({
    providers: module ? {} : { widget: { source, ...(version === undefined ? {} : { version }) } },
    cliConfig: options.cliConfig ?? (module ? recommendedConfig(base, HOST) : networkMirrorConfig(url)),
    caPem: options.caPem ?? stage.caPem,
    env: options.env ?? {},
  })
  if (module !== undefined) await writeFile(join(workspace.dir, 'main.tf'), moduleCalls({ net: module }))
  if (options.lockFile !== undefined) await writeFile(join(workspace.dir, '.terraform.lock.hcl'), options.lockFile)
  let output = ''
  for (const args of commands) output += (await workspace.run(args)).output
  return output.replaceAll(join(workspace.dir, '..'), '/home/you')
}

/** Archives are created, evidence is put: so this disk is full for archives alone. */
function withoutSpace(blobs: BlobStore): BlobStore {
  const full = () => new MirrorError('STORAGE_FULL', 'Cannot write: the disk is full.', { operation: 'write' })
  return new Proxy(blobs, {
    get(target, name) {
      if (name === 'create') return () => Promise.reject(full())
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

interface ImposterParts {
  readonly authority: TestAuthority
  readonly opened: AsyncDisposableStack
}

async function startImposter(imposter: Imposter, { authority, opened }: ImposterParts): Promise<string> {
  const names = imposter === 'otherName' ? ['mirror.acme.example'] : ['localhost', '127.0.0.1']
  const certificate = await authority.issue(names, validityOf(imposter))
  const server = createServer(certificate, (request, response) => {
    if (imposter === 'silent') return
    const { status = 200, type = 'application/json', body } = answerOf(imposter, request.url ?? '/')
    if (imposter !== 'torn' || type === 'application/json') {
      response.writeHead(status, { 'content-type': type }).end(body)
      return
    }
    response.writeHead(status, { 'content-type': type, 'content-length': 1_000_000 })
    if (request.method === 'HEAD') response.end()
    else response.write(body, () => response.destroy())
  })
  if (imposter === 'hangsUp') server.on('connection', (socket) => socket.destroy())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  opened.defer(() => closeServer(server))
  return `https://localhost:${(server.address() as AddressInfo).port}/providers/`
}

function validityOf(imposter: Imposter) {
  const at = (days: number) => new Date(Date.now() + days * DAY_MS)
  if (imposter === 'expired') return { notBefore: at(-90), notAfter: at(-1) }
  if (imposter === 'notYetValid') return { notBefore: at(1), notAfter: at(90) }
  return undefined
}

function answerOf(imposter: Imposter, url: string): { status?: number; type?: string; body: string } {
  if (imposter === 'login') return { status: 401, body: '{}' }
  if (imposter === 'forbidden') return { status: 403, type: 'text/html', body: '<h1>Access denied</h1>' }
  if (imposter === 'html') return { type: 'text/html', body: '<h1>Sign in to the network</h1>' }
  if (imposter === 'plainText') return { type: 'text/plain', body: '{"versions":{"1.0.0":{}}}' }
  if (url.endsWith('/index.json')) return { body: '{"versions":{"1.0.0":{}}}' }
  if (!url.endsWith('.json')) return { type: 'application/zip', body: 'scanned' }
  const archive = { url: 'widget.zip', hashes: [`zh:${'0'.repeat(64)}`] }
  const platforms = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'darwin_amd64', 'windows_amd64']
  return { body: JSON.stringify({ archives: Object.fromEntries(platforms.map((each) => [each, archive])) }) }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
