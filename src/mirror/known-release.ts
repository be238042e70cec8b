import { MirrorError } from '../errors.ts'
import { formatPlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress } from '../protocol/provider-address.ts'
import type { Version } from '../protocol/version.ts'
import type { AuthenticatedRelease, InferredPackage } from '../verify/authenticate-release.ts'
import type { Release } from './release-record.ts'

/** A release as far as it is known now: the record, and what the last answer of the origin left open. */
export interface KnownRelease {
  readonly release: Release
  /** Platforms whose document did not come, but whose archive an accepted SHA256SUMS names. By `OS_ARCH`. */
  readonly inferred: ReadonlyMap<string, InferredPackage>
  /** Why a platform that was asked for is not in `release`. By `OS_ARCH`. */
  readonly problems: ReadonlyMap<string, MirrorError>
  /** Set if a platform is neither known nor inferred because the origin did not answer for it. */
  readonly unanswered: MirrorError | undefined
}

/** True if nothing could be served from it: the origin has answered, but for every platform with a 404. */
export function isEmpty({ release, inferred }: KnownRelease): boolean {
  return inferred.size === 0 && Object.keys(release.platforms).length === 0
}

/** A record alone, or with what was open when it was last asked about; what the record knows is not open any more. */
export function knownRelease(release: Release, before?: KnownRelease): KnownRelease {
  if (before === undefined) return { release, inferred: new Map(), problems: new Map(), unanswered: undefined }
  return {
    ...before,
    release,
    inferred: without(release, before.inferred),
    problems: without(release, before.problems),
  }
}

/** A record with what the origin's answer left open. */
export function releaseWithGaps(
  release: Release,
  authenticated: AuthenticatedRelease,
  problems: ReadonlyMap<string, MirrorError>,
): KnownRelease {
  const inferred = new Map<string, InferredPackage>()
  let unanswered: MirrorError | undefined
  for (const claim of authenticated.unanswered) {
    const name = formatPlatform(claim.platform)
    if (release.platforms[name] !== undefined) continue
    if (claim.inferred === undefined) unanswered ??= claim.error
    else inferred.set(name, claim.inferred)
  }
  return { release, inferred, problems: without(release, problems), unanswered }
}

/** A pinned record beside an answer that contradicts it: what that answer offers besides is refused, not absent. */
export function unchangedRelease(
  release: Release,
  { packages }: AuthenticatedRelease,
  { changed, problems }: { changed: MirrorError; problems: ReadonlyMap<string, MirrorError> },
): KnownRelease {
  const offered = packages.map(({ published }) => [formatPlatform(published.platform), changed] as const)
  return { ...knownRelease(release), problems: without(release, new Map([...problems, ...offered])) }
}

function without<T>(release: Release, byPlatform: ReadonlyMap<string, T>): Map<string, T> {
  return new Map([...byPlatform].filter(([platform]) => release.platforms[platform] === undefined))
}

/** Why each asked platform is not among the packages, by `OS_ARCH`. */
export function problemsOf(
  authenticated: AuthenticatedRelease,
  address: ProviderAddress,
  version: Version,
): Map<string, MirrorError> {
  const problems = new Map<string, MirrorError>()
  for (const { platform, error } of authenticated.refused) problems.set(formatPlatform(platform), error)
  for (const { platform, error } of authenticated.unanswered) problems.set(formatPlatform(platform), error)
  for (const { platform, upstreamUrl, detail } of authenticated.absent) {
    const name = formatPlatform(platform)
    const message = `${formatProviderAddress(address)} ${version} is not published for ${name}`
    problems.set(
      name,
      new MirrorError('PLATFORM_NOT_FOUND', detail === undefined ? message : `${message}; the origin says: ${detail}`, {
        address: formatProviderAddress(address),
        version,
        platform: name,
        upstreamUrl,
        upstreamStatus: 404,
      }),
    )
  }
  return problems
}
