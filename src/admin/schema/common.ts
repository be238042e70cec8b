import { z } from 'zod'

/*
 * The documents of the admin API (design, section 6): the one source of validation, of the OpenAPI document, and of what
 * the commands read. Times are RFC 3339 text, sizes are bytes.
 */

/** A moment, as `2026-12-01T10:00:00.000Z`. */
export const time = z.string().meta({ format: 'date-time' })

/** A number of bytes. */
export const bytes = z.int().nonnegative()

/** SHA-256, lower-case hexadecimal. */
export const digest = z.string().regex(/^[0-9a-f]{64}$/)

/** A page of a list; `next` is the `cursor` of the following one, null at the end. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), next: z.string().nullable() })
}

/** What every list takes. */
export const pageQuery = z.strictObject({
  cursor: z.string().max(1_000).optional(),
  limit: z.coerce.number().int().min(1).max(500).prefault(100),
})

/** Every answer that is no success. */
export const Problem = z.object({
  /** What happened, why, and what to do, for people. */
  error: z.string(),
  /** A code of `errors.ts`, or `UNEXPECTED`. */
  code: z.string(),
  /** One for each thing that is wrong with a request. */
  problems: z.array(z.string()).optional(),
  upstream_url: z.string().optional(),
  upstream_status: z.int().optional(),
  request_id: z.string(),
})
export type Problem = z.infer<typeof Problem>

/** How something held was authenticated. */
export const Authentication = z.discriminatedUnion('rule', [
  z.object({
    rule: z.literal('signed-checksums'),
    signer: z.object({
      keyId: z.string(),
      fingerprint: z.string(),
      userId: z.string(),
      signedAt: time,
      keyExpired: z.boolean(),
      weak: z.boolean(),
    }),
  }),
  z.object({ rule: z.literal('unsigned-checksums') }),
  z.object({ rule: z.literal('stated-checksum') }),
])
