import { z } from 'zod'
import { bytes } from './common.ts'
import { Job } from './jobs.ts'

const MAX_ENTRIES = 10_000
const MAX_FILES = 1_000
const MAX_TEXT = 1_000_000

const platforms = z.array(z.string().max(64)).max(100)

/** `POST /warm` */
export const WarmRequest = z.strictObject({
  providers: z
    .array(
      z.strictObject({
        /** `hashicorp/aws`, or with a host before it. */
        source: z.string().max(512),
        /** Exact, a constraint as Terraform reads it, or `latest`; without it, `latest`. */
        version: z.string().max(512).prefault('latest'),
        /** Instead of those of the whole request. */
        platforms: platforms.optional(),
      }),
    )
    .max(MAX_ENTRIES)
    .prefault([]),
  modules: z
    .array(z.strictObject({ source: z.string().max(4_096), version: z.string().max(512).prefault('latest') }))
    .max(MAX_ENTRIES)
    .prefault([]),
  /** Texts of `.terraform.lock.hcl` files. */
  lockFiles: z.array(z.string().max(MAX_TEXT)).max(MAX_FILES).prefault([]),
  /** Path from the configuration's root to text, `.tf` and `.tf.json`; local modules beside it begin with `../`. */
  configuration: z
    .record(z.string().max(1_000), z.string().max(MAX_TEXT))
    .refine((files) => Object.keys(files).length <= MAX_FILES, { error: `more than ${MAX_FILES} files` })
    .prefault({}),
  /** `OS_ARCH`; empty: those that the mirror's own machine would use, `linux_amd64`. `*` alone: all that are published. */
  platforms: platforms.prefault([]),
  /** Also what the modules call: registry modules and providers. */
  followModules: z.boolean().prefault(true),
  dryRun: z.boolean().prefault(false),
})
export type WarmRequest = z.infer<typeof WarmRequest>

/** What a dry run tells of one item. */
export const PlannedItem = z.object({
  item: z.string(),
  /** `fetch`: it would be downloaded; `held`: it is here; else why it cannot come. */
  outcome: z.enum(['fetch', 'held', 'notPublished', 'refused', 'failed']),
  reason: z.string().optional(),
  /** Where it is known. */
  size: bytes.optional(),
})
export type PlannedItem = z.infer<typeof PlannedItem>

/** The answer to a dry run (200). `bytes` sums up the known sizes of what would be fetched. */
export const WarmPlan = z.object({ items: z.array(PlannedItem), bytes, unknownSizes: z.int() })
export type WarmPlan = z.infer<typeof WarmPlan>

/** The answer otherwise (202). */
export const WarmStarted = Job
