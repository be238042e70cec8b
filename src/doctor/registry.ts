import { type ErrorCode, isMirrorError, MirrorError } from '../errors.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import { type ProviderAddress, parseProviderAddressText } from '../protocol/provider-address.ts'
import type { ListedVersion } from '../protocol/provider-versions.ts'
import type { ProviderUpstream } from '../upstream/provider-upstream.ts'
import { authenticateRelease } from '../verify/authenticate-release.ts'
import { type Finding, findingsAbout } from './finding.ts'
import type { NamedOrigin } from './origin-connection.ts'

/** Asked for by everybody, so it is there. */
const USUAL_PLATFORM: Platform = { os: 'linux', arch: 'amd64' }
const PATIENCE_MS = 8_000
const PRERELEASE = /^\d+\.\d+\.\d+-/

/** An origin that can be reached, and what to ask it for. */
export interface RegistryQuestion {
  readonly origin: NamedOrigin
  readonly upstream: ProviderUpstream
  /** `NAMESPACE/TYPE`; without one only discovery is looked at. */
  readonly provider: string | undefined
  readonly now: Date
}

/** Discovery, a list of versions, one download document, SHA256SUMS and its signature, as the mirror itself judges them. */
export async function judgeRegistry(question: RegistryQuestion, signal: AbortSignal): Promise<readonly Finding[]> {
  const { origin, upstream, provider, now } = question
  const { hostname } = origin
  const list = findingsAbout(`origin ${hostname}: versions`)
  // Without a provider of its own, the answer to this one tells at least whether there is a registry.
  const address = parseProviderAddressText(`${hostname}/${provider ?? 'hashicorp/null'}`)
  const name = `${address.namespace}/${address.type}`
  let listed: ListedVersion | undefined
  try {
    const { versions } = await upstream.versions(address, { signal, hops: [] })
    listed = versions.findLast(({ version }) => !PRERELEASE.test(version)) ?? versions.at(-1)
    if (listed === undefined) {
      return [list.warning(`it lists no version of ${name}`, 'Name a provider that it has: --provider NAMESPACE/TYPE.')]
    }
  } catch (error) {
    if (isMirrorError(error) && error.is('PROVIDER_NOT_FOUND')) {
      if (provider === undefined) {
        return [list.ok('it answers as a registry; to try more, name a provider of it: --provider HOST/NAMESPACE/TYPE')]
      }
      return [
        list.problem(error.message, `Does the token of this origin cover ${name}? Else name another: --provider.`),
      ]
    }
    return [list.problem(textOf(error), remedyFor(error, hostname))]
  }
  const found = list.ok(`discovery and list are well; ${name} ${listed.version} is the newest`)
  return [found, await judgeRelease(question, { address, listed, now }, signal)]
}

async function judgeRelease(
  { origin, upstream }: RegistryQuestion,
  { address, listed, now }: { address: ProviderAddress; listed: ListedVersion; now: Date },
  signal: AbortSignal,
): Promise<Finding> {
  const { hostname, settings } = origin
  const about = findingsAbout(`origin ${hostname}: download and signature`)
  const name = `${address.namespace}/${address.type} ${listed.version}`
  const usual = listed.platforms.find((each) => formatPlatform(each) === formatPlatform(USUAL_PLATFORM))
  const platform = usual ?? listed.platforms[0] ?? USUAL_PLATFORM
  try {
    const patience = AbortSignal.timeout(PATIENCE_MS)
    const query = { address, spelling: listed.spelling, platforms: [platform], extend: false, patience }
    const claim = await upstream.release(query, { signal, hops: [] })
    const rules = { ...settings.verification, everSigned: false }
    const { packages, refused, unanswered } = await authenticateRelease(claim, rules, now)
    const [authenticated] = packages
    const fault = refused[0]?.error ?? unanswered[0]?.error
    if (authenticated === undefined) {
      const error =
        fault ??
        new MirrorError('UPSTREAM_INVALID', `${name} is not published for ${formatPlatform(platform)}`, {
          host: hostname,
          upstreamUrl: '',
          reason: 'absent',
        })
      return about.problem(`${name}: ${error.message}`, remedyFor(error, hostname))
    }
    const { authentication } = authenticated
    return about.ok(
      authentication.rule === 'signed-checksums'
        ? `${name} is signed by key ${authentication.signer.keyId}`
        : `${name} has checksums, and lists no key`,
    )
  } catch (error) {
    return about.problem(`${name}: ${textOf(error)}`, remedyFor(error, hostname))
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const REMEDIES: Partial<Record<ErrorCode, (hostname: string) => string>> = {
  NO_PROVIDER_SERVICE: (host) => `Is ${host} the host of a registry? Else set its services["providers.v1"].`,
  UPSTREAM_INVALID: (host) =>
    `Does a sign-in page or a filter answer for ${host}? Ask the registry's operators; services of the origin do without discovery.`,
  UPSTREAM_TLS: () => 'Name the authority in caFile of this origin, of the host in hosts, or of upstream.',
  UPSTREAM_REFUSED: () =>
    'If that place is right, set allowPrivateAddresses, allowedHosts or allowHttp of this origin.',
  UPSTREAM_RATE_LIMITED: () => 'Wait; a token of this origin, or of the host in hosts, raises the limit.',
  UPSTREAM_TIMEOUT: () => 'Try again; is a proxy or a filter in the way?',
  UPSTREAM_UNREACHABLE: () => 'The origin points there: allow that host in firewall and proxy.',
  SIGNATURE_INVALID: () =>
    'The mirror refuses such releases, as clients do: tell the publisher. A wrong clock here has the same effect.',
  SIGNATURE_MISSING: () => 'The mirror refuses such releases: tell the publisher.',
  SIGNATURE_REQUIRED: (host) =>
    `If this registry signs nothing, set verification: { signatures: whenListed } at origins["${host}"].`,
  KEY_UNREADABLE: () => 'The mirror refuses such releases: tell the publisher.',
  CHECKSUM_MISSING: () => 'The mirror refuses such releases: tell the publisher.',
  CHECKSUM_MISMATCH: () => 'The mirror refuses such releases: tell the publisher.',
  CHECKSUMS_INVALID: () => 'The mirror refuses such releases: tell the publisher.',
}

function remedyFor(error: unknown, hostname: string): string {
  if (!isMirrorError(error)) return 'Try again.'
  if (error.is('UPSTREAM_STATUS') && [401, 403].includes(error.fields.upstreamStatus)) {
    return `Set the right token at origins["${hostname}"].token; a 403 may also be a firewall or a region block.`
  }
  return REMEDIES[error.code]?.(hostname) ?? 'Try again later, and see docs/troubleshooting.md.'
}
