import { z } from 'zod'
import { Authentication, bytes, digest, page, pageQuery, time } from './common.ts'

/** `GET /packages`; `q` is looked for anywhere in the item's name. */
export const PackageQuery = pageQuery.extend({
  origin: z.string().max(300).optional(),
  namespace: z.string().max(128).optional(),
  type: z.string().max(128).optional(),
  q: z.string().max(300).optional(),
})

const usage = {
  firstSeenAt: time,
  cachedAt: time,
  lastUsedAt: time.nullable(),
  hits: z.int(),
  /** Names of the sets of pins that hold it. */
  pins: z.array(z.string()),
}

/** One archive of a provider that is held. */
export const HeldPackage = z.object({
  item: z.string(),
  origin: z.string(),
  namespace: z.string(),
  type: z.string(),
  version: z.string(),
  platform: z.string(),
  filename: z.string(),
  size: bytes,
  digest,
  /** `zh:` first, then `h1:` where it is computed. */
  hashes: z.array(z.string()),
  authentication: Authentication,
  /** Where it came from, without query. */
  archiveUrl: z.string(),
  ...usage,
})
export type HeldPackage = z.infer<typeof HeldPackage>

/** What a module's files call. Empty lists for one that calls nothing; null if its files could not be read. */
export const ModuleCalls = z.object({
  modules: z.array(z.object({ source: z.string(), version: z.string().nullable() })),
  /** Sources that no registry serves: git and archives. This mirror does not carry them. */
  otherSources: z.array(z.string()),
  providers: z.array(z.object({ source: z.string(), version: z.string().nullable() })),
})
export type ModuleCalls = z.infer<typeof ModuleCalls>

/** `GET /modules`; `type` is the target system. */
export const ModuleQuery = PackageQuery.extend({ name: z.string().max(128).optional() })

/** One version of a module that is held. */
export const HeldModule = z.object({
  item: z.string(),
  origin: z.string(),
  namespace: z.string(),
  name: z.string(),
  targetSystem: z.string(),
  version: z.string(),
  size: bytes,
  digest,
  /** Where its files came from, without query and credentials. */
  source: z.string(),
  /** The commit, or the digest of the origin's archive. */
  revision: z.string(),
  calls: ModuleCalls.nullable(),
  ...usage,
})
export type HeldModule = z.infer<typeof HeldModule>

export const PackagePage = page(HeldPackage)
export const ModulePage = page(HeldModule)

/** `GET /origins` */
export const OriginState = z.object({
  /** As configured; patterns too. */
  host: z.string(),
  /** `unknown`: not asked since the start. `backingOff`: not asked until `retryAt`. */
  health: z.enum(['unknown', 'well', 'failing', 'backingOff']),
  lastAnswerAt: time.nullable(),
  lastError: z.object({ at: time, error: z.string(), code: z.string() }).nullable(),
  retryAt: time.nullable(),
  signatures: z.enum(['required', 'whenListed']),
  packages: z.int(),
  modules: z.int(),
})
export type OriginState = z.infer<typeof OriginState>
export const OriginList = z.object({ items: z.array(OriginState), next: z.null() })

/** `GET /stats`: since the start, unless it says otherwise. */
export const Statistics = z.object({
  startedAt: time,
  mode: z.enum(['online', 'sealed']),
  packages: z.object({ count: z.int().nullable(), bytes: bytes.nullable() }),
  modules: z.object({ count: z.int().nullable(), bytes: bytes.nullable() }),
  /** Disk blocks of everything stored; null until it is added up. */
  disk: z.object({
    used: bytes.nullable(),
    reserved: bytes,
    maxSize: bytes.nullable(),
    free: bytes,
    minFree: bytes.nullable(),
  }),
  /** Answers by outcome: `hit`, `miss`, `coalesced`, `stale`, `negative`. */
  answers: z.record(z.string(), z.int()),
  /** Hits and coalesced answers among all that had an outcome; null before the first. */
  hitRatio: z.number().min(0).max(1).nullable(),
  /** Bytes sent to clients, received from origins, and the difference that origins did not have to send. */
  sentBytes: bytes,
  receivedBytes: bytes,
  savedBytes: bytes,
  /** The most used items of all time, most hits first. */
  top: z.array(z.object({ item: z.string(), hits: z.int(), lastUsedAt: time })),
  evictions: z.object({ items: z.int(), bytes }),
  quarantine: z.object({ files: z.int(), bytes }),
})
export type Statistics = z.infer<typeof Statistics>
