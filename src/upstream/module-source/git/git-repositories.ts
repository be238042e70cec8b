import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isMirrorError, MirrorError } from '../../../errors.ts'
import type { Log } from '../../../log.ts'
import type { GitSource } from '../../../protocol/module-source.ts'
import { parseRemoteSource } from '../../../protocol/module-source.ts'
import { AttemptFailed } from '../../failure.ts'
import type { UpstreamObserver } from '../../observer.ts'
import { Retries } from '../../retry.ts'
import type { UrlRules } from '../../url-rules.ts'
import type { ModuleFile, ModuleLimits, ModuleTree } from '../module-tree.ts'
import { invalidModule, layOutTree, type SourceEntry, type TreeLayout } from '../tree-layout.ts'
import type { Workspace, Workspaces } from '../workspace.ts'
import type { Dial } from './dial.ts'
import type { Environment } from './git-command.ts'
import { type GitCredentials, makeGitEnvironment, sshHost } from './git-environment.ts'
import { gitError } from './git-failure.ts'
import { fetchCommit } from './git-fetch.ts'
import { GitObjects, type GitPlace } from './git-objects.ts'
import { isFullCommitId, resolveRef } from './git-refs.ts'
import { TunnelProxy } from './tunnel-proxy.ts'

/** What repositories are fetched with, under the rules of one origin. */
export interface GitRepositoriesOptions {
  readonly urlRules: UrlRules
  readonly dial: Dial
  readonly credentials: ReadonlyMap<string, GitCredentials>
  /** PEM texts, added to the public roots. */
  readonly ca: readonly string[]
  readonly userAgent: string
  readonly workspaces: Workspaces
  readonly limits: ModuleLimits
  /** How often a fetch is begun anew that failed on its way. */
  readonly retries: number
  readonly observer: UpstreamObserver
  readonly log: Log
  /** For tests: `git::file` is fetched too. */
  readonly allowFile?: boolean
}

const MAX_SUBMODULES = 100
const MAX_DEPTH = 5

/** Fetches modules out of git repositories by the system's `git`, in an environment of our own. */
export class GitRepositories {
  readonly #options: GitRepositoriesOptions

  constructor(options: GitRepositoriesOptions) {
    this.#options = options
  }

  /**
   * The files of the commit that a source names, submodules included. The caller disposes of the tree. The signal is
   * the only limit in time.
   * @throws MirrorError `MODULE_SOURCE_REFUSED`, `MODULE_INVALID`, `UPSTREAM_*`, `STORAGE_*`; the reason of the signal
   */
  async open(source: GitSource, signal: AbortSignal): Promise<ModuleTree> {
    return await this.#attempt(source, signal, async (session, opened) => {
      const { entries, commit, moving } = await session.fetch(source, { prefix: '', depth: 0 })
      const layout = layOutTree(entries, { limits: this.#options.limits, singleFolder: false })
      return new GitTree({ kind: 'commit', commit, moving }, layout, opened.move())
    })
  }

  /**
   * The commit that a tag or branch names now; undefined for a commit, which names itself.
   * @throws MirrorError as `open`
   */
  async currentCommit(source: GitSource, signal: AbortSignal): Promise<string | undefined> {
    if (source.ref !== undefined && isFullCommitId(source.ref)) return undefined
    return await this.#attempt(source, signal, async (session) => (await session.resolve(source)).commit)
  }

  /** Work in a session of its own, begun anew if it fails in a way that may pass. What is `opened` is closed after it. */
  async #attempt<T>(
    source: GitSource,
    signal: AbortSignal,
    work: (session: Session, opened: AsyncDisposableStack) => Promise<T>,
  ): Promise<T> {
    this.#assertAllowed(source)
    const { retries, observer, log } = this.#options
    const { url } = source
    const attempts = new Retries({ url, signal, retries, maxRetryAfterMs: 0, observer, log, random: Math.random })
    return await attempts.run(async () => {
      await using opened = new AsyncDisposableStack()
      const session = await this.#begin(opened, signal)
      return await session.run(source, () => work(session, opened))
    })
  }

  async #begin(opened: AsyncDisposableStack, signal: AbortSignal): Promise<Session> {
    const {
      workspaces,
      urlRules,
      dial,
      limits,
      observer,
      credentials,
      ca,
      userAgent,
      allowFile = false,
    } = this.#options
    const workspace = opened.use(await workspaces.create())
    const received = (host: string, bytes: number): void => observer.received(host, bytes)
    const proxy = opened.use(await TunnelProxy.start({ urlRules, dial, maxBytes: limits.downloadBytes, received }))
    const folder = workspace.path
    const env = await workspace.run(() => makeGitEnvironment({ credentials, ca, userAgent, folder, proxy, allowFile }))
    return new Session({
      workspace,
      proxy,
      env,
      opened,
      signal,
      limits,
      assertAllowed: (url) => this.#assertAllowed(url),
    })
  }

  /** Judged before anything runs, so that a refusal is not told by git in its own words. */
  #assertAllowed({ url }: GitSource): void {
    const scheme = url.protocol.slice(0, -1)
    if (scheme === 'file' && this.#options.allowFile === true) return
    if (scheme !== 'https' && scheme !== 'ssh')
      throw refused(`git::${scheme}`, 'only https and ssh are safe ways to a repository')
    this.#options.urlRules(new URL(`https://${url.hostname}:${url.port || (scheme === 'ssh' ? 22 : 443)}/`))
    if (scheme === 'https') return
    const host = sshHost(url)
    const { sshKeyFile, knownHostsFile } = this.#options.credentials.get(host) ?? {}
    if (sshKeyFile === undefined || knownHostsFile === undefined) {
      throw refused(
        'git::ssh',
        `set hosts.${host}.sshKeyFile and hosts.${host}.knownHostsFile, or have the registry name an https URL`,
      )
    }
  }
}

interface SessionParts {
  readonly workspace: Workspace
  readonly proxy: TunnelProxy
  readonly env: Environment
  readonly opened: AsyncDisposableStack
  readonly signal: AbortSignal
  readonly limits: ModuleLimits
  readonly assertAllowed: (source: GitSource) => void
}

/** One fetch: a repository and its submodules. */
class Session {
  readonly #parts: SessionParts
  #count = 0

  constructor(parts: SessionParts) {
    this.#parts = parts
  }

  /** Runs work of this session; what git or the disk complains of becomes an error of ours. */
  async run<T>({ url }: GitSource, work: () => Promise<T>): Promise<T> {
    const { workspace, proxy, signal } = this.#parts
    try {
      return await workspace.run(work)
    } catch (error) {
      signal.throwIfAborted()
      const failure = gitError(error, url, proxy.failure)
      throw isPassing(failure) ? new AttemptFailed(failure, 'connection') : failure
    }
  }

  resolve(source: GitSource): ReturnType<typeof resolveRef> {
    const { workspace, env, signal } = this.#parts
    return resolveRef(source, { cwd: workspace.path, env, signal })
  }

  /** The entries of a source and of all below it, their paths behind `prefix`. */
  async fetch(
    source: GitSource,
    { prefix, depth }: { prefix: string; depth: number },
  ): Promise<{ entries: SourceEntry<GitPlace>[]; commit: string; moving: boolean }> {
    const { workspace, env, opened, signal, limits } = this.#parts
    if (depth > MAX_DEPTH || this.#count > MAX_SUBMODULES) throw invalidModule('its submodules have no end')
    const gitDir = join(workspace.path, `repository-${this.#count++}`)
    await mkdir(gitDir)
    const { commit, moving } = await fetchCommit(source, { gitDir, env, signal })
    const objects = opened.use(new GitObjects({ gitDir, env, signal }))
    const { entries: own, gitlinks } = await objects.list(commit, limits.files)
    const entries = own.map((entry) => ({ ...entry, path: prefix + entry.path }))
    const urls = gitlinks.length === 0 ? new Map<string, string>() : await objects.submoduleUrls(commit)
    for (const link of gitlinks) {
      const url = urls.get(link.path)
      if (url === undefined)
        throw invalidModule(`it has a submodule without an address at ${JSON.stringify(link.path)}`)
      const inner = submoduleSource(url, source.url, link.commit)
      this.#parts.assertAllowed(inner)
      const found = await this.fetch(inner, { prefix: `${prefix}${link.path}/`, depth: depth + 1 })
      entries.push(...found.entries)
    }
    return { entries, commit, moving }
  }
}

function isPassing(error: unknown): error is MirrorError {
  if (!isMirrorError(error)) return false
  return (
    error.is('UPSTREAM_UNREACHABLE', 'UPSTREAM_TIMEOUT') ||
    (error.is('UPSTREAM_STATUS') && error.fields.upstreamStatus >= 500)
  )
}

/** Relative addresses count from the repository's own, as if that were a folder. */
function submoduleSource(address: string, parent: URL, commit: string): GitSource {
  const relative = /^\.\.?\//.test(address)
  const text = relative ? new URL(address, `${parent.href.replace(/\/+$/, '')}/`).href : address
  const source = parseRemoteSource(text.startsWith('git::') ? text : `git::${text}`)
  if (source.kind === 'git') return { ...source, ref: commit }
  throw refused('git', 'a submodule has an address that is no git repository')
}

function refused(scheme: string, reason: string): MirrorError<'MODULE_SOURCE_REFUSED'> {
  return new MirrorError('MODULE_SOURCE_REFUSED', `the module source (${scheme}) is refused: ${reason}`, {
    scheme,
    reason,
  })
}

class GitTree implements ModuleTree {
  readonly revision: ModuleTree['revision']
  readonly files: ReadonlyMap<string, ModuleFile>
  readonly notes: readonly string[]
  readonly #resources: AsyncDisposableStack

  constructor(revision: ModuleTree['revision'], layout: TreeLayout<GitPlace>, resources: AsyncDisposableStack) {
    this.revision = revision
    this.notes = layout.notes
    this.#resources = resources
    this.files = new Map(
      [...layout.files].map(([path, { size, executable, content }]) => [
        path,
        { size, executable, read: () => content.objects.read(content.id, size) },
      ]),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources[Symbol.asyncDispose]()
  }
}
