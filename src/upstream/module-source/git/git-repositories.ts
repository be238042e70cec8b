import type { Log } from '../../../log.ts'
import { type GitSource, refusedSource } from '../../../protocol/module-source.ts'
import type { UpstreamObserver } from '../../observer.ts'
import { Retries } from '../../retry.ts'
import type { UrlRules } from '../../url-rules.ts'
import type { ModuleFile, ModuleLimits, ModuleTree } from '../module-tree.ts'
import { layOutTree, type TreeLayout } from '../tree-layout.ts'
import type { Workspaces } from '../workspace.ts'
import type { Dial } from './dial.ts'
import { type GitCredentials, makeGitEnvironment, sshHost } from './git-environment.ts'
import type { GitPlace } from './git-objects.ts'
import { isFullCommitId } from './git-refs.ts'
import { GitSession } from './git-session.ts'
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
  /** The longest silence of a host. */
  readonly idleTimeoutMs: number
  /** How often a fetch is begun anew that failed on its way. */
  readonly retries: number
  readonly observer: UpstreamObserver
  readonly log: Log
  /** For tests: `git::file` is fetched too. */
  readonly allowFile?: boolean
}

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
    work: (session: GitSession, opened: AsyncDisposableStack) => Promise<T>,
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

  async #begin(opened: AsyncDisposableStack, signal: AbortSignal): Promise<GitSession> {
    const { workspaces, urlRules, dial, limits, idleTimeoutMs, observer, allowFile = false } = this.#options
    const { credentials, ca, userAgent } = this.#options
    const workspace = opened.use(await workspaces.create())
    const received = (host: string, bytes: number): void => observer.received(host, bytes)
    const maxBytes = limits.downloadBytes
    const proxy = opened.use(await TunnelProxy.start({ urlRules, dial, maxBytes, idleTimeoutMs, received }))
    const folder = workspace.path
    const env = await workspace.run(() => makeGitEnvironment({ credentials, ca, userAgent, folder, proxy, allowFile }))
    return new GitSession({
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
      throw refusedSource(`git::${scheme}`, 'only https and ssh are safe ways to a repository')
    this.#options.urlRules(new URL(`https://${url.hostname}:${url.port || (scheme === 'ssh' ? 22 : 443)}/`))
    if (scheme === 'https') return
    const host = sshHost(url)
    const { sshKeyFile, knownHostsFile } = this.#options.credentials.get(host) ?? {}
    if (sshKeyFile === undefined || knownHostsFile === undefined) {
      throw refusedSource(
        'git::ssh',
        `set hosts.${host}.sshKeyFile and hosts.${host}.knownHostsFile, or have the registry name an https URL`,
      )
    }
  }
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
