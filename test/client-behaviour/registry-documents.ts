import { z } from 'zod'
import { RelativeUrl } from './mirror-documents.ts'

/*
 * What `versions` and `download` of a provider registry must be so that no client stumbles over them, and none is led
 * past the mirror. Derived from client-contract C1 to C9 alone, as `mirror-documents.ts` is from A.
 */

const Word = z.string().regex(/^[a-z0-9]{1,32}$/)

/** C4: one version that does not parse fails the whole provider. C2: protocols and warnings are text. */
export const VersionsDocument = z.strictObject({
  versions: z.array(
    z.strictObject({
      version: z.string().regex(/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/),
      protocols: z.array(z.string()),
      platforms: z.array(z.strictObject({ os: Word, arch: Word })),
    }),
  ),
  warnings: z.array(z.string()).nonempty().optional(),
})

/** C7: relative to the document, up to the version's folder and down again, so that every prefix before it stays. */
const Link = z
  .string()
  .startsWith('../../')
  .refine((link) => RelativeUrl.safeParse(link.slice('../../'.length)).success, { error: 'not a plain relative URL' })

/**
 * C2: these fields and no others, since Go folds the case of keys and a foreign one may be a link. C8: what the origin
 * said passes as it is, also where it is odd.
 */
export const DownloadDocument = z.strictObject({
  protocols: z.unknown().optional(),
  os: z.unknown().optional(),
  arch: z.unknown().optional(),
  filename: z.string(),
  shasum: z.unknown().optional(),
  download_url: Link,
  shasums_url: Link.optional(),
  shasums_signature_url: Link.optional(),
  signing_keys: z.unknown().optional(),
  packages: z.unknown().optional(),
})
