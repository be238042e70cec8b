import { z } from 'zod'
import { type Platform, toPlatform } from '../protocol/platform.ts'
import type { ProviderVersions } from '../protocol/provider-versions.ts'
import { parseVersion } from '../protocol/version.ts'

const platform = z.object({ os: z.string(), arch: z.string() }).transform(({ os, arch }, context): Platform => {
  const parsed = toPlatform(os, arch)
  if (parsed !== undefined) return parsed
  context.addIssue({ code: 'custom', message: 'not a platform' })
  return z.NEVER
})

const storedVersions = z.object({
  versions: z.array(
    z.object({
      version: z.string().transform((text, context) => {
        const version = parseVersion(text)
        if (version !== undefined) return version
        context.addIssue({ code: 'custom', message: 'not a version' })
        return z.NEVER
      }),
      spelling: z.string(),
      protocols: z.array(z.string()),
      platforms: z.array(platform),
    }),
  ),
  warnings: z.array(z.string()),
  problems: z.array(z.string()),
})

/** Reads a version list back from the metadata cache; undefined if it is not one, e.g. written by another version. */
export function parseStoredVersions(stored: unknown): ProviderVersions | undefined {
  return storedVersions.safeParse(stored).data
}
