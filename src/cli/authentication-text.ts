import type { z } from 'zod'
import type { Authentication } from '../admin/schema/common.ts'

/** How something held was authenticated, in words: who signed it, when, and what is wrong with the key. */
export function formatAuthentication(authentication: z.infer<typeof Authentication>): string {
  if (authentication.rule === 'unsigned-checksums') return 'by checksums that nobody signed'
  if (authentication.rule === 'stated-checksum') return 'by the checksum that the registry stated'
  const { keyId, userId, signedAt, keyExpired, weak } = authentication.signer
  const doubts = [...(keyExpired ? ['the key has expired since'] : []), ...(weak ? ['with SHA-1'] : [])]
  const doubt = doubts.length === 0 ? '' : ` (${doubts.join(', ')})`
  return `by checksums signed with key ${keyId}, ${userId}, at ${signedAt}${doubt}`
}
