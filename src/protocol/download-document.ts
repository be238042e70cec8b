import { MirrorError, redactUrl } from '../errors.ts'
import { isJsonObject, type JsonObject, type JsonValue, stringElements } from './json.ts'
import { type PackageHash, parsePackageHash, parseSha256 } from './package-hash.ts'
import { formatPlatform, type Platform } from './platform.ts'
import type { PublishedPlatform, SigningKey } from './release-claim.ts'

/** One platform as its download document states it, and where its SHA256SUMS and signature are to be had. */
export interface DownloadDocument extends Omit<PublishedPlatform, 'checksums'> {
  /** Absolute, may carry a secret query; undefined if the document names none (field-reports B28). */
  readonly sumsUrl: string | undefined
  /** Likewise. */
  readonly signatureUrl: string | undefined
}

/** Where the document comes from: its final URL, after redirects, and the platform that was asked for. */
interface Source {
  readonly documentUrl: string
  readonly platform: Platform
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control bytes are what it looks for
const NO_FILENAME = /^\.{0,2}$|[/\\\u0000-\u001f\u007f]/

/**
 * Reads the `download` document of the provider registry protocol (client-contract C2, C6, C7), parsed as JSON already.
 * What decides over authenticity is read strictly, so that a damaged document is never taken for one that lists no keys;
 * the rest permissively.
 * @throws MirrorError `UPSTREAM_INVALID`
 */
export function parseDownloadDocument(body: unknown, source: Source): DownloadDocument {
  if (!isJsonObject(body)) throw invalid(source, 'not a JSON object')
  assertPlatform(body, source)
  const archiveUrl = resolveUrl(body, 'download_url', source)
  if (archiveUrl === undefined) throw invalid(source, 'it has no "download_url"')
  return {
    kind: 'published',
    platform: source.platform,
    filename: parseFilename(body.filename, source),
    shasum: typeof body.shasum === 'string' ? parseSha256(body.shasum) : undefined,
    archiveUrl,
    protocols: stringElements(body.protocols),
    signingKeys: parseSigningKeys(body.signing_keys, source),
    statedHashes: parseStatedHashes(body.packages, source.platform),
    document: body,
    documentUrl: source.documentUrl,
    sumsUrl: resolveUrl(body, 'shasums_url', source),
    signatureUrl: resolveUrl(body, 'shasums_signature_url', source),
  }
}

function assertPlatform(body: JsonObject, source: Source): void {
  const asked = source.platform
  for (const [key, expected] of [['os', asked.os] as const, ['arch', asked.arch] as const]) {
    const stated = body[key] ?? expected
    if (stated === expected) continue
    throw invalid(
      source,
      `it is for another platform: "${key}" is ${quote(stated)}, asked was ${formatPlatform(asked)}`,
    )
  }
}

function parseFilename(filename: JsonValue | undefined, source: Source): string {
  if (typeof filename === 'string' && !NO_FILENAME.test(filename)) return filename
  throw invalid(source, `"filename" is ${quote(filename)}, which is no file name`)
}

/** Absent, null and blank are all "names none". */
function resolveUrl(body: JsonObject, key: string, source: Source): string | undefined {
  const reference = body[key] ?? ''
  if (typeof reference !== 'string') throw invalid(source, `"${key}" is not a string`)
  if (reference.trim() === '') return undefined
  const url = URL.parse(reference, source.documentUrl)
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url.href
  throw invalid(source, `"${key}" is not an http or https URL`)
}

/**
 * An entry without a readable armor is kept, with an empty one: "keys are listed, but none can be read" is refused,
 * where "no keys are listed" may be accepted.
 */
function parseSigningKeys(signingKeys: JsonValue | undefined, source: Source): SigningKey[] {
  if (signingKeys === undefined || signingKeys === null) return []
  if (!isJsonObject(signingKeys)) throw invalid(source, '"signing_keys" is not an object')
  const entries = signingKeys.gpg_public_keys ?? []
  if (!Array.isArray(entries)) throw invalid(source, '"gpg_public_keys" is not an array')
  return entries.flatMap((entry) => {
    if (entry === null) return []
    if (!isJsonObject(entry)) throw invalid(source, 'an entry of "gpg_public_keys" is not an object')
    if (Object.keys(entry).length === 0) return []
    return [{ asciiArmor: typeof entry.ascii_armor === 'string' ? entry.ascii_armor : '', document: entry }]
  })
}

/** Unsigned claims: what cannot be read is as good as absent. */
function parseStatedHashes(packages: JsonValue | undefined, platform: Platform): PackageHash[] {
  const key = formatPlatform(platform)
  const stated = isJsonObject(packages) && Object.hasOwn(packages, key) ? packages[key] : undefined
  const hashes = isJsonObject(stated) ? stringElements(stated.hashes).map(parsePackageHash) : []
  return [...new Set(hashes.filter((hash) => hash !== undefined))]
}

function quote(value: JsonValue | undefined): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : 'not a string'
}

function invalid(source: Source, reason: string): MirrorError<'UPSTREAM_INVALID'> {
  const upstreamUrl = redactUrl(source.documentUrl)
  return new MirrorError('UPSTREAM_INVALID', `the download document at ${upstreamUrl} cannot be used: ${reason}`, {
    host: URL.parse(source.documentUrl)?.host ?? '',
    upstreamUrl,
    reason,
  })
}
