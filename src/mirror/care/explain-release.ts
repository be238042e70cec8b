import { parsePlatformName } from '../../protocol/platform.ts'
import type { ProviderAddress } from '../../protocol/provider-address.ts'
import type { Version } from '../../protocol/version.ts'
import type { BlobStore } from '../../store/blob-store.ts'
import type { CheckedBlobStore } from '../../store/checked-blob-store.ts'
import type { Archives } from '../archives.ts'
import type { Catalogue } from '../catalogue.ts'
import type { HeldVersion } from '../provider-records.ts'
import type { ChangedFile } from '../release-adoption.ts'
import type { Release } from '../release-record.ts'
import type { Releases } from '../releases.ts'
import {
  ago,
  counted,
  describeAuthentication,
  type Finding,
  findingOf,
  howMended,
  notHeld,
  showAuthentication,
} from './finding.ts'

/** What a release is explained from. */
export interface ExplainReleaseParts {
  readonly isSealed: boolean
  readonly catalogue: Catalogue
  readonly releases: Pick<Releases, 'remembered'>
  readonly archives: Pick<Archives, 'failureOf'>
  readonly blobs: Pick<BlobStore, 'stat'>
  readonly checked: Pick<CheckedBlobStore, 'checkedAt'>
  readonly now: () => number
}

/** What is known of one version of a provider, and of its platforms. @throws MirrorError `STORAGE_FAILED` */
export async function explainRelease(
  address: ProviderAddress,
  version: Version,
  parts: ExplainReleaseParts,
): Promise<{ held: HeldVersion; findings: Finding[] }> {
  const held = await parts.catalogue.look(address, version)
  const findings = [explainRecord(held.release), ...explainPin(held)]
  findings.push(...explainCheck(address, version, parts))
  for (const [name, platform] of Object.entries(held.release?.platforms ?? {})) {
    const authentication = showAuthentication(platform.authentication)
    const text = `${platform.filename} with SHA-256 ${platform.digest}: ${describeAuthentication(platform.authentication)}.`
    findings.push({ about: `platform ${name}`, verdict: 'ok', text, authentication })
    findings.push(...(await explainArchive({ address, version, name, held }, parts)))
  }
  return { held, findings }
}

function explainRecord(release: Release | undefined): Finding {
  if (release === undefined) {
    const text = 'No evidence of this version is recorded: nobody has asked for it, or nothing of it could be accepted.'
    return { about: 'release', verdict: 'missing', text }
  }
  const { generation, firstSeenAt, files, platforms, complete, spelling } = release
  const gaps = complete ? '' : ' Platforms that the origin names are missing in it.'
  const text =
    `Recorded as ${spelling}, first seen ${firstSeenAt}, generation ${generation}: ` +
    `${counted(files.length, 'file')}, ${counted(Object.keys(platforms).length, 'platform')}.${gaps}`
  return { about: 'release', verdict: 'ok', text, at: release.recordedAt }
}

function explainPin({ pin }: HeldVersion): Finding[] {
  if (pin === undefined) return []
  const text =
    `An archive of generation ${pin.generation} is held, or was, so no file of it may change. ` +
    'Only a refresh with `accept` replaces them.'
  return [{ about: 'first copy', verdict: 'ok', text, at: pin.pinnedAt }]
}

function explainCheck(address: ProviderAddress, version: Version, { releases, now }: ExplainReleaseParts): Finding[] {
  const { check, failure } = releases.remembered(address, version)
  const findings: Finding[] = failure === undefined ? [] : [findingOf('origin', failure.error, failure.at)]
  if (check === undefined) return findings
  if (check.failure !== undefined) {
    if (failure === undefined) findings.push(findingOf('origin', check.failure, check.at))
  } else {
    const text = `The origin was asked about this version ${ago(check.at, now())}.`
    findings.push({ about: 'origin', verdict: 'ok', text, at: new Date(check.at).toISOString() })
  }
  if (check.changed?.adopted === false) findings.push(explainChange(check.changed.files, check.at))
  for (const [name, problem] of check.known.problems) findings.push(findingOf(`platform ${name}`, problem, check.at))
  for (const [name, { digest }] of check.known.inferred) {
    const text = `The origin did not answer for it; SHA256SUMS name ${digest}, and it is checked when it is asked for.`
    findings.push({ about: `platform ${name}`, verdict: 'stale', text })
  }
  if (check.known.unanswered !== undefined) findings.push(findingOf('release', check.known.unanswered, check.at))
  return findings
}

function explainChange(files: readonly ChangedFile[], at: number): Finding {
  const [first] = files
  const more = files.length > 1 ? ` (and ${files.length - 1} more files)` : ''
  const text =
    `The origin has released it anew with other bytes: ${first?.filename} is ${first?.held} here, and ` +
    `${first?.offered ?? 'not listed'} there${more}. What is held stays; only a refresh with \`accept\` replaces it.`
  return { about: 'release', verdict: 'changed', text, code: 'RELEASE_CHANGED', at: new Date(at).toISOString() }
}

async function explainArchive(
  { address, version, name, held }: { address: ProviderAddress; version: Version; name: string; held: HeldVersion },
  { isSealed, archives, blobs, checked, now }: ExplainReleaseParts,
): Promise<Finding[]> {
  const about = `archive ${name}`
  const platform = parsePlatformName(name)
  const failure = platform && archives.failureOf({ address, version, platform })
  const failed = failure === undefined ? [] : [findingOf(about, failure.error, failure.at)]
  const archive = held.archives.get(name)
  if (archive === undefined) {
    return failed.length > 0 ? failed : [notHeld(about, isSealed)]
  }
  const stat = await blobs.stat(archive.digest)
  if (stat?.size !== archive.size) {
    const text = `Recorded, but its file ${archive.digest} is ${stat === undefined ? 'gone' : 'of another size'}: ${howMended(isSealed)}.`
    return [{ about, verdict: 'damaged', text, at: archive.cachedAt }, ...failed]
  }
  const soundAt = checked.checkedAt(archive.digest)
  const sound = soundAt === undefined ? 'not hashed since the start' : `found sound ${ago(soundAt, now())}`
  const text = `Held since ${archive.cachedAt}, ${archive.size} bytes, ${sound}.`
  const authentication = showAuthentication(archive.authentication)
  return [{ about, verdict: 'ok', text, at: archive.cachedAt, authentication }, ...failed]
}
