import { z } from 'zod'
import { sha256, version } from './record-values.ts'

const revision = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('commit'), commit: z.string(), moving: z.boolean() }),
  z.object({ kind: z.literal('archive'), digest: z.string() }),
])

/** One state of a module version's files. */
const moduleState = z.object({
  /** The blob that clients get, a `.tar.gz`. */
  digest: sha256,
  size: z.number().int().nonnegative(),
  /** SHA-256 of the tar in it: the files, whatever packed them. */
  tarDigest: sha256,
  unpackedBytes: z.number().int().nonnegative(),
  files: z.number().int().positive(),
  /** Where they came from, without query and credentials. */
  source: z.string(),
  revision,
  /** Below the archive's root, as clients are told; empty for the root. */
  subfolder: z.string(),
  cachedAt: z.string(),
})
/** One state of a module version's files, and where it came from. */
export type ModuleState = z.infer<typeof moduleState>

/**
 * A module version that is held. Its state is the first one that came and stays so; only what a branch names may move
 * on. Written after the blob.
 */
export const ModuleRecord = z.object({
  format: z.literal(1),
  address: z.string(),
  version,
  /** The version as the origin writes it. */
  spelling: z.string(),
  state: moduleState,
  /** States of a branch before, newest first: clients that were told of them may still come. */
  earlier: z.array(moduleState),
})
export type ModuleRecord = z.infer<typeof ModuleRecord>

/** Every state that clients may have been told of, the newest first. */
export function statesOf(record: ModuleRecord | undefined): readonly ModuleState[] {
  return record === undefined ? [] : [record.state, ...record.earlier]
}
