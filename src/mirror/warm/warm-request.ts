import { z } from 'zod'

const platforms = z.array(z.string())

/**
 * What to warm, as it is kept in the journal of a job: texts as they were given. Limits and the meaning of each part are
 * the admin API's.
 */
export const WarmRequest = z.object({
  providers: z.array(z.object({ source: z.string(), version: z.string(), platforms: platforms.optional() })),
  modules: z.array(z.object({ source: z.string(), version: z.string() })),
  lockFiles: z.array(z.string()),
  configuration: z.record(z.string(), z.string()),
  platforms,
  followModules: z.boolean(),
})
export type WarmRequest = z.infer<typeof WarmRequest>
