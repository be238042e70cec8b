import { setTimeout as sleep } from 'node:timers/promises'
import { formatPlatform, type Platform, parsePlatform } from '../protocol/platform.ts'
import type { ProviderAddress } from '../protocol/provider-address.ts'
import type { ListedVersion } from '../protocol/provider-versions.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'
import {
  type AuthenticatedRelease,
  authenticateRelease,
  type VerificationRules,
} from '../verify/authenticate-release.ts'
import type { Deadline } from './deadline.ts'
import type { HeldVersion } from './provider-records.ts'
import { isSameEvidence } from './release-adoption.ts'
import type { Release } from './release-record.ts'

/** A release set may be caught between two generations at the origin: so often is it fetched whole again. */
const MAX_ATTEMPTS = 3
const PAUSE_MS = 200
/** What must be left of the deadline when platforms that have not answered are given up. */
const RESERVE_MS = 1_000

/** What to ask about one version, and how to judge the answer. */
export interface ReleaseCheck {
  readonly upstream: ProviderUpstream
  readonly address: ProviderAddress
  readonly listed: ListedVersion
  readonly held: HeldVersion
  /** Ask for every document, although the release may be known to be complete: a link in it has died. */
  readonly whole: boolean
  readonly rules: VerificationRules
  readonly deadline: Deadline
  /** Ends the check: the deadline or shutdown. */
  readonly signal: AbortSignal
  readonly hops: readonly string[]
  readonly now: () => number
}

/**
 * Asks an upstream about one version and authenticates the answer. A release that can only have grown is first probed
 * with one platform, so that keeping it fresh costs the origin three small requests and not one for each platform.
 * @throws MirrorError `NO_PROVIDER_SERVICE`, `UPSTREAM_*`
 */
export async function checkRelease(check: ReleaseCheck): Promise<AuthenticatedRelease | 'unchanged'> {
  const { held, listed, whole } = check
  const probe = whole ? undefined : findProbe(held, listed)
  if (probe !== undefined && held.release !== undefined) {
    const authenticated = await collect(check, [probe], false)
    if (confirms(authenticated, held.release)) return 'unchanged'
  }
  return collect(check, unionOfPlatforms(listed.platforms, held.release), true)
}

/** If the parts look like two generations mixed (field-reports B24), the whole set is fetched again. */
async function collect(check: ReleaseCheck, platforms: Platform[], extend: boolean): Promise<AuthenticatedRelease> {
  const { upstream, address, listed, rules, deadline, signal, hops, now } = check
  for (let attempt = 1; ; attempt++) {
    const patience = AbortSignal.timeout(Math.max(1, deadline.remainingMs() - RESERVE_MS))
    const query = { address, spelling: listed.spelling, platforms, extend, patience }
    const claim = await upstream.release(query, { signal, hops })
    const authenticated = await authenticateRelease(claim, rules, new Date(now()))
    const timeForMore = deadline.remainingMs() > 2 * RESERVE_MS && !signal.aborted
    if (!authenticated.mayBeMixed || attempt === MAX_ATTEMPTS || !timeForMore) return authenticated
    await sleep(PAUSE_MS * attempt)
  }
}

/** A platform that stands for the whole of a pinned, complete release with nothing new in the origin's list. */
function findProbe(held: HeldVersion, listed: ListedVersion): Platform | undefined {
  const { release, pin, archives } = held
  if (release === undefined || pin === undefined || !release.complete) return undefined
  if (listed.platforms.some((platform) => release.platforms[formatPlatform(platform)] === undefined)) return undefined
  const name = [...archives.keys(), ...Object.keys(release.platforms)].find((known) => known in release.platforms)
  return name === undefined ? undefined : parsePlatform(name)
}

function confirms(authenticated: AuthenticatedRelease, release: Release): boolean {
  return (
    authenticated.packages.length > 0 &&
    authenticated.packages.every((offered) =>
      isSameEvidence(release.platforms[formatPlatform(offered.published.platform)], offered),
    )
  )
}

function unionOfPlatforms(listed: readonly Platform[], release: Release | undefined): Platform[] {
  const names = new Set([...listed.map(formatPlatform), ...Object.keys(release?.platforms ?? {})])
  return [...names].map(parsePlatform)
}
