/** One file of a module. */
export interface ModuleFile {
  readonly size: number
  readonly executable: boolean
  /** The bytes, `size` of them. Readable as often as wanted while the tree is open. @throws MirrorError */
  read(): AsyncIterable<Uint8Array>
}

/** What tells two states of a source apart. */
export type ModuleRevision =
  | {
      readonly kind: 'commit'
      /** Full hexadecimal id. */
      readonly commit: string
      /** True for a branch: it may name another commit later, and that is no re-release. */
      readonly moving: boolean
    }
  | {
      readonly kind: 'archive'
      /** SHA-256 of the bytes that came, lower-case hexadecimal. */
      readonly digest: string
    }

/**
 * The files of one module, at hand in any order: no links, no `.git`, nothing that leaves the folder. Whoever opened
 * it disposes of it; that removes all that lies on disk.
 */
export interface ModuleTree extends AsyncDisposable {
  readonly revision: ModuleRevision
  /** By path below the root, with `/` between the names, sorted by UTF-16 code units. Never empty. */
  readonly files: ReadonlyMap<string, ModuleFile>
  /** What was left out, in words for the log. */
  readonly notes: readonly string[]
}

/** How large a module may be. */
export interface ModuleLimits {
  /** Of what comes over the network. */
  readonly downloadBytes: number
  /** Of all files together, links counted as the copies that they become. */
  readonly unpackedBytes: number
  readonly files: number
}
