import type { ModuleAddress } from '../protocol/module-address.ts'
import type { ModuleLocation } from '../protocol/module-location.ts'
import type { ModuleVersions } from '../protocol/module-versions.ts'
import type { ModuleTree } from './module-source/module-tree.ts'
import type { UpstreamRequest } from './provider-upstream.ts'

export type { ModuleFile, ModuleLimits, ModuleRevision, ModuleTree } from './module-source/module-tree.ts'

/**
 * Where modules come from: the registry says where a version's files are, and they are fetched from there. Absence is an
 * error that `isNotFound` recognises, and only on the registry's own word (design, rule 3).
 */
export interface ModuleUpstream {
  /**
   * All versions that the registry lists, unparsable ones left out and reported.
   * @throws MirrorError `MODULE_NOT_FOUND`, `NO_MODULE_SERVICE`, `UPSTREAM_*`
   */
  versions(address: ModuleAddress, request: UpstreamRequest): Promise<ModuleVersions>

  /**
   * Where the files of a version are, in the spelling that the registry lists.
   * @throws MirrorError `VERSION_NOT_FOUND`, `NO_MODULE_SERVICE`, `MODULE_SOURCE_REFUSED`, `UPSTREAM_*`
   */
  locate(address: ModuleAddress, spelling: string, request: UpstreamRequest): Promise<ModuleLocation>

  /**
   * Fetches the files. The caller disposes of the tree. The signal is the only limit in time.
   * @throws MirrorError `MODULE_SOURCE_REFUSED`, `MODULE_INVALID`, `CHECKSUM_MISMATCH`, `UPSTREAM_*`, `STORAGE_*`
   */
  open(location: ModuleLocation, request: UpstreamRequest): Promise<ModuleTree>

  /**
   * The commit that a git source names now, without fetching files; undefined where there is none to ask for (archives,
   * commits).
   * @throws MirrorError `UPSTREAM_*`
   */
  currentCommit(location: ModuleLocation, request: UpstreamRequest): Promise<string | undefined>
}
