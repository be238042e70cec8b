import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isMirrorError, type MirrorError } from '../../../errors.ts'
import { type GitSource, parseRemoteSource, refusedSource } from '../../../protocol/module-source.ts'
import { AttemptFailed } from '../../failure.ts'
import type { ModuleLimits } from '../module-tree.ts'
import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import type { Workspace } from '../workspace.ts'
import type { Environment } from './git-command.ts'
import { gitError } from './git-failure.ts'
import { fetchCommit } from './git-fetch.ts'
import { GitObjects, type GitPlace } from './git-objects.ts'
import { resolveRef } from './git-refs.ts'
import type { TunnelProxy } from './tunnel-proxy.ts'

const MAX_SUBMODULES = 100
const MAX_DEPTH = 5

/** What a session works with; all of it belongs to the caller. */
export interface GitSessionParts {
  readonly workspace: Workspace
  readonly proxy: TunnelProxy
  readonly env: Environment
  /** Takes what the session opens, to be closed after it. */
  readonly opened: AsyncDisposableStack
  readonly signal: AbortSignal
  readonly limits: ModuleLimits
  /** Judges a submodule before it is fetched. @throws MirrorError */
  readonly assertAllowed: (source: GitSource) => void
}

/** One fetch: a repository and its submodules. */
export class GitSession {
  readonly #parts: GitSessionParts
  #count = 0

  constructor(parts: GitSessionParts) {
    this.#parts = parts
  }

  /**
   * Runs work of this session; what git or the disk complains of becomes an error of ours.
   * @throws AttemptFailed if it may pass; MirrorError; the reason of the signal
   */
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

  /** What the ref of a source is now. */
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
      const place = { prefix: `${prefix}${link.path}/`, depth: depth + 1 }
      // What fails is told by the name of the submodule.
      const found = await this.run(inner, () => this.fetch(inner, place))
      for (const entry of found.entries) entries.push(entry)
      if (entries.length > limits.files) throw invalidModule(`it has more than ${limits.files} files`)
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
  throw refusedSource('git', 'a submodule has an address that is no git repository')
}
