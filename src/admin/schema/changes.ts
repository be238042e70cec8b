import { z } from 'zod'
import { bytes, digest, page, time } from './common.ts'

/** `DELETE /packages/…` and `DELETE /modules/…`: what was removed. Pinned items stay, and are named. */
export const PurgeResult = z.object({ removed: z.array(z.string()), pinned: z.array(z.string()), bytes })
export type PurgeResult = z.infer<typeof PurgeResult>

/** `?forget=true` also drops the evidence, and with it the promise that the version never changes. */
export const PurgeQuery = z.strictObject({ forget: z.enum(['true', 'false']).prefault('false') })

/** `POST /refresh`: asks the origin anew, now. Without a version: the list of versions. */
export const RefreshRequest = z.strictObject({
  /** A provider's `hashicorp/aws`, or a module's `terraform-aws-modules/vpc/aws`; with a host before it or not. */
  address: z.string().max(512),
  version: z.string().max(128).optional(),
  /** Replaces a version that was published anew with other bytes. */
  accept: z.boolean().prefault(false),
})
export type RefreshRequest = z.infer<typeof RefreshRequest>

/** A file whose digest the origin changed; `offered` is null for one that it does not publish any more. */
export const ChangedFile = z.object({ filename: z.string(), held: digest, offered: digest.nullable() })

/** `changed`: there are other bytes, and `accept` was not given (409 then, with the same body). */
export const RefreshResult = z.object({
  address: z.string(),
  version: z.string().nullable(),
  outcome: z.enum(['unchanged', 'grown', 'changed', 'replaced']),
  /** New versions of a list, or new platforms of a version. */
  added: z.array(z.string()),
  changes: z.array(ChangedFile),
})
export type RefreshResult = z.infer<typeof RefreshResult>

const setName = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,99}$/, { error: 'expected a-z, 0-9, dot, dash or underline' })

/** `:name` of `/pins/:name`. */
export const PinName = setName

/** `PUT /pins/:name`: replaces the set by everything that its parts name; empty is an error. */
export const PinRequest = z.strictObject({
  /** Texts of lock files. */
  lockFiles: z.array(z.string().max(1_000_000)).max(1_000).prefault([]),
  /** Names of items as `GET /packages` gives them, or without platform, without version, without host: the default origin's. */
  items: z.array(z.string().max(600)).max(10_000).prefault([]),
  /** Ids of jobs: everything that they brought or found. */
  jobs: z.array(z.string().max(64)).max(1_000).prefault([]),
})
export type PinRequest = z.infer<typeof PinRequest>

/** A named set of items that eviction and purge leave alone. */
export const PinSet = z.object({
  name: z.string(),
  updatedAt: time,
  /** As given: an item without platform or version stands for all of it. */
  items: z.array(z.string()),
  /** How many held packages and modules it covers now, and their size. */
  held: z.int(),
  bytes,
})
export type PinSet = z.infer<typeof PinSet>
export const PinPage = page(PinSet)

/** `POST /verify`: a job that hashes what is held again. */
export const VerifyRequest = z.strictObject({
  /** Only items whose name begins so; empty for everything, orphans and dangling records too. */
  prefix: z.string().max(600).prefault(''),
  /** Put right what can be: fetch damaged items again, remove orphans and dangling records. */
  repair: z.boolean().prefault(true),
  /** Bytes per second; without it, the configured rate. */
  rate: z.int().positive().optional(),
})
export type VerifyRequest = z.infer<typeof VerifyRequest>
