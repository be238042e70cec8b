import { z } from 'zod'
import { Authentication } from './common.ts'

/** `GET /explain?address=&version=`; the address is a provider's or a module's. */
export const ExplainQuery = z.strictObject({
  address: z.string().max(512),
  version: z.string().max(128).optional(),
})

/** One fact that an explanation rests on. */
export const Finding = z.object({
  /** What was looked at: `policy`, `list`, `release`, `platform linux_amd64`, `archive linux_amd64`, `pin`, `origin`. */
  about: z.string(),
  verdict: z.enum(['ok', 'missing', 'stale', 'hidden', 'refused', 'changed', 'damaged']),
  /** In words for people: what, why, what to do. */
  text: z.string(),
  code: z.string().optional(),
  upstreamUrl: z.string().optional(),
  at: z.string().optional(),
  authentication: Authentication.optional(),
})
export type Finding = z.infer<typeof Finding>

/** Why a client sees what it sees, without asking any origin. */
export const Explanation = z.object({
  address: z.string(),
  version: z.string().nullable(),
  /** In one sentence. */
  summary: z.string(),
  findings: z.array(Finding),
})
export type Explanation = z.infer<typeof Explanation>
