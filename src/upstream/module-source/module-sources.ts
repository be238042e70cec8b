import type { ModuleLocation } from '../../protocol/module-location.ts'
import type { RemoteModuleSource } from '../../protocol/module-source.ts'
import type { OriginClient } from '../http-client.ts'
import type { UpstreamRequest } from '../provider-upstream.ts'
import type { GitRepositories } from './git/git-repositories.ts'
import { openHttpArchive } from './http-archive.ts'
import type { ModuleLimits, ModuleTree } from './module-tree.ts'
import type { Workspaces } from './workspace.ts'

/** What the sources of one origin's modules are fetched with; all of it belongs to the caller. */
export interface ModuleSourcesParts {
  readonly client: OriginClient
  readonly git: GitRepositories
  readonly workspaces: Workspaces
  readonly limits: ModuleLimits
}

/** Fetches modules from wherever an origin says that they are: one folder here for each kind of source. */
export class ModuleSources {
  readonly #parts: ModuleSourcesParts

  constructor(parts: ModuleSourcesParts) {
    this.#parts = parts
  }

  /** As `ModuleUpstream.open`. */
  open({ source, withOriginToken }: ModuleLocation, request: UpstreamRequest): Promise<ModuleTree> {
    if (source.kind === 'git') return this.#parts.git.open(source, request.signal)
    return openHttpArchive(source, this.#parts, { ...request, trusted: withOriginToken })
  }

  /** As `ModuleUpstream.currentCommit`. */
  async currentCommit(source: RemoteModuleSource, { signal }: UpstreamRequest): Promise<string | undefined> {
    return source.kind === 'git' ? await this.#parts.git.currentCommit(source, signal) : undefined
  }
}
