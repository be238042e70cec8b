import { z } from 'zod'
import type { ModuleVersions } from '../protocol/module-versions.ts'
import { type Platform, toPlatform } from '../protocol/platform.ts'
import type { ProviderVersions } from '../protocol/provider-versions.ts'
import { version } from './record-values.ts'

const platform = z.object({ os: z.string(), arch: z.string() }).transform(({ os, arch }, context): Platform => {
  const parsed = toPlatform(os, arch)
  if (parsed !== undefined) return parsed
  context.addIssue({ code: 'custom', message: 'not a platform' })
  return z.NEVER
})

const storedModuleVersions = z.object({
  versions: z.array(z.object({ version, spelling: z.string() })),
  problems: z.array(z.string()),
})

const storedVersions = z.object({
  versions: z.array(
    z.object({
      version,
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

/** The same for a module's list. */
export function parseStoredModuleVersions(stored: unknown): ModuleVersions | undefined {
  return storedModuleVersions.safeParse(stored).data
}
