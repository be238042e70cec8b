/** Keeps small JSON documents durably under a path of names. Knows nothing of Terraform. One conformance suite tests every implementation. */

/** A path of names, e.g. `['providers', 'registry.terraform.io', 'hashicorp', 'aws', '5.100.0', 'release']`. Any text without NUL is a name, up to 180 characters; an empty one is not. */
export type RecordKey = readonly string[]

export interface RecordStore {
  /** Undefined if there is none, or if what is there is not JSON (it is set aside and logged). @throws MirrorError `STORAGE_FAILED` */
  get(key: RecordKey): Promise<unknown>
  /** Replaces atomically and durably: after a crash the old or the new document is there, whole. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  put(key: RecordKey, document: unknown): Promise<void>
  /** Fine if there is none. @throws MirrorError `STORAGE_FAILED` */
  delete(key: RecordKey): Promise<void>
  /** The names directly below a path that lead to a record (as `[...prefix, name]` or deeper), each once, sorted. */
  children(prefix: RecordKey): Promise<string[]>
}
