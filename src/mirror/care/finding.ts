import type { ErrorCode, MirrorError } from '../../errors.ts'
import type { Authentication } from '../../protocol/authentication.ts'

/** How something was authenticated, as it is shown: the digests of the evidence are left out. */
export type ShownAuthentication =
  | { readonly rule: 'signed-checksums'; readonly signer: (Authentication & { rule: 'signed-checksums' })['signer'] }
  | { readonly rule: 'unsigned-checksums' | 'stated-checksum' }

/** One fact that an explanation rests on. */
export interface Finding {
  /** What was looked at: `policy`, `list`, `release`, `platform linux_amd64`, `archive linux_amd64`, `pin`, `origin`. */
  readonly about: string
  readonly verdict: 'ok' | 'missing' | 'stale' | 'hidden' | 'refused' | 'changed' | 'damaged'
  /** What, why, what to do. */
  readonly text: string
  readonly code?: ErrorCode
  readonly upstreamUrl?: string
  /** ISO 8601. */
  readonly at?: string
  readonly authentication?: ShownAuthentication
}

/** Why a client sees what it sees. */
export interface Explanation {
  readonly address: string
  readonly version: string | null
  /** In one sentence. */
  readonly summary: string
  readonly findings: readonly Finding[]
}

/** A finding that an error tells. */
export function findingOf(about: string, error: MirrorError, at?: number): Finding {
  const { upstreamUrl } = error.fields as { upstreamUrl?: unknown }
  return {
    about,
    verdict: verdictOf(error),
    text: error.message,
    code: error.code,
    ...(typeof upstreamUrl === 'string' && upstreamUrl !== '' ? { upstreamUrl } : {}),
    ...(at === undefined ? {} : { at: new Date(at).toISOString() }),
  }
}

/** What an error means for what was asked: an outage hides nothing, it makes it stale. */
function verdictOf(error: MirrorError): Finding['verdict'] {
  if (error.code.endsWith('_NOT_FOUND') || error.is('NO_PROVIDER_SERVICE', 'NO_MODULE_SERVICE', 'NOT_CACHED')) {
    return 'missing'
  }
  if (error.is('RELEASE_CHANGED')) return 'changed'
  if (error.is('ORIGIN_NOT_ALLOWED')) return 'hidden'
  if (/^(?:UPSTREAM|STORAGE)_/.test(error.code) && !error.is('UPSTREAM_REFUSED')) return 'stale'
  return 'refused'
}

/** Without the digests of the evidence. */
export function showAuthentication(authentication: Authentication): ShownAuthentication {
  const { rule } = authentication
  return rule === 'signed-checksums' ? { rule, signer: authentication.signer } : { rule }
}

/** In words, with an article. */
export function describeAuthentication(authentication: Authentication): string {
  switch (authentication.rule) {
    case 'signed-checksums': {
      const { keyId, userId } = authentication.signer
      return `its SHA256SUMS are signed by key ${keyId}${userId === '' ? '' : ` (${userId})`}`
    }
    case 'unsigned-checksums':
      return 'its SHA256SUMS are signed by nobody'
    case 'stated-checksum':
      return 'its origin states the digest, and nothing signs it'
  }
}

/** `3 minutes ago`: for people; a time that is yet to come is now. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1_000))
  if (seconds < 120) return `${seconds} seconds ago`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} minutes ago`
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} hours ago`
  return `${Math.round(seconds / 86_400)} days ago`
}

/** What is not held; of a sealed mirror nobody gets it. */
export function notHeld(about: string, isSealed: boolean): Finding {
  const then = isSealed
    ? 'clients do not get it. Warm it while online, then seal again'
    : 'the first client that asks for it makes this mirror fetch it'
  return { about, verdict: 'missing', text: `Not held: ${then}.` }
}

/** How a damaged or lost file comes back. */
export function howMended(isSealed: boolean): string {
  return isSealed
    ? 'copy it from where it is whole, for a sealed mirror fetches nothing'
    : 'it is fetched again when it is asked for'
}

/** `1 version`, `2 versions`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
