import { isMirrorError, MirrorError, redactUrl } from '../../errors.ts'
import { type DownloadDocument, parseDownloadDocument } from '../../protocol/download-document.ts'
import { formatPlatform, type Platform } from '../../protocol/platform.ts'
import type { ChecksumsClaim, PlatformClaim, ReleaseClaim } from '../../protocol/release-claim.ts'
import type { DocumentAnswer, OriginClient } from '../http-client.ts'
import { findOriginText } from '../origin-text.ts'
import type { ReleaseQuery, UpstreamRequest } from '../provider-upstream.ts'
import { parseJsonAnswer, statusError } from './origin-answer.ts'

const MAX_DOCUMENT_BYTES = 4_000_000
const MAX_SUMS_BYTES = 4_000_000
const MAX_SIGNATURE_BYTES = 256_000
const MAX_PLATFORMS = 64

/** What the usual release tool builds and nearly half of all versions have; asked when a list names no platform. */
const COMMON_PLATFORMS: readonly Platform[] = [
  ...['amd64', 'arm64', '386', 'arm'].map((arch) => ({ os: 'linux', arch })),
  ...['amd64', 'arm64'].map((arch) => ({ os: 'darwin', arch })),
  ...['amd64', 'arm64', '386', 'arm'].map((arch) => ({ os: 'windows', arch })),
  ...['amd64', 'arm64', '386', 'arm'].map((arch) => ({ os: 'freebsd', arch })),
]

/** A line of SHA256SUMS whose file name ends as those of archives do. */
const ARCHIVE_LINE = /_([a-z0-9]{1,32})_([a-z0-9]{1,32})\.zip[ \t\r]*$/gm

interface ReleaseOrigin {
  readonly client: OriginClient
  /** URL of `NAMESPACE/TYPE/` below the origin's service. */
  readonly base: URL
  readonly request: UpstreamRequest
}

/**
 * Asks a registry for all asked platforms of a version at once. SHA256SUMS and signature are fetched as soon as a
 * document names them. With `query.extend`, platforms that only SHA256SUMS names are asked too, because clients can use
 * them; they stand behind the others, and one that is 404 is left out. Whatever is still missing when the patience ends
 * is reported as `UPSTREAM_TIMEOUT`.
 */
export async function fetchRelease(query: ReleaseQuery, origin: ReleaseOrigin): Promise<ReleaseClaim> {
  const fetch = new ReleaseFetch(query, origin)
  if (query.platforms.length > 0) await fetch.askAll(query.platforms, { guessed: false })
  else await fetch.askAll(COMMON_PLATFORMS, { guessed: true })
  return fetch.claim()
}

type ChecksumsUrls = Pick<ChecksumsClaim, 'sumsUrl' | 'signatureUrl'>

/** The state of one release while its answers come in. Every request is awaited by the one that caused it. */
class ReleaseFetch {
  readonly #query: ReleaseQuery
  readonly #origin: ReleaseOrigin
  readonly #signal: AbortSignal
  /** By `OS_ARCH`, in the order asked; undefined while unanswered, and where an absence is not worth reporting. */
  readonly #claims = new Map<string, PlatformClaim | undefined>()
  readonly #pairs: ChecksumsUrls[] = []
  /** Index as in `#pairs`. */
  readonly #checksums: ChecksumsClaim[] = []

  constructor(query: ReleaseQuery, origin: ReleaseOrigin) {
    this.#query = query
    this.#origin = origin
    this.#signal = AbortSignal.any([origin.request.signal, query.patience])
  }

  /** `guessed`: nobody said that the origin has these, so a 404 for one of them is no news. */
  async askAll(platforms: readonly Platform[], { guessed }: { guessed: boolean }): Promise<void> {
    await Promise.all(platforms.map((platform) => this.#ask(platform, guessed)))
  }

  claim(): ReleaseClaim {
    const platforms = [...this.#claims.values()].filter((claim) => claim !== undefined)
    return { platforms, checksums: this.#checksums }
  }

  async #ask(platform: Platform, guessed: boolean): Promise<void> {
    const name = formatPlatform(platform)
    if (this.#claims.has(name)) return
    if (this.#claims.size >= MAX_PLATFORMS) {
      if (!guessed) this.#claims.set(name, { kind: 'failed', platform, error: this.#tooMany() })
      return
    }
    this.#claims.set(name, undefined)

    const answer = await this.#fetchPlatform(platform)
    if (answer.kind === 'absent' && guessed) return
    if (answer.kind !== 'published') {
      this.#claims.set(name, answer)
      return
    }
    const { sumsUrl, signatureUrl, ...published } = answer
    if (sumsUrl === undefined) {
      this.#claims.set(name, { ...published, checksums: undefined })
      return
    }
    const known = this.#pairs.findIndex((pair) => pair.sumsUrl === sumsUrl && pair.signatureUrl === signatureUrl)
    const checksums = known >= 0 ? known : this.#pairs.push({ sumsUrl, signatureUrl }) - 1
    this.#claims.set(name, { ...published, checksums })
    if (known < 0) await this.#fetchChecksums(checksums, { sumsUrl, signatureUrl })
  }

  async #fetchPlatform(platform: Platform): Promise<Exclude<PlatformClaim, { kind: 'published' }> | DownloadDocument> {
    const { client, base, request } = this.#origin
    const url = new URL(`${encodeVersion(this.#query.spelling)}/download/${platform.os}/${platform.arch}`, base)
    try {
      const answer = await client.fetchDocument({
        url,
        signal: this.#signal,
        hops: request.hops,
        maxBytes: MAX_DOCUMENT_BYTES,
        trusted: true,
      })
      if (answer.status === 404) return absent(platform, answer)
      if (answer.status !== 200)
        throw statusError(answer, `the download document of ${formatPlatform(platform)} was answered with status`)
      return parseDownloadDocument(parseJsonAnswer(answer), { documentUrl: answer.url.href, platform })
    } catch (error) {
      return { kind: 'failed', platform, error: this.#toMirrorError(error, url) }
    }
  }

  async #fetchChecksums(index: number, { sumsUrl, signatureUrl }: ChecksumsUrls): Promise<void> {
    const whole = this.#fetchFile(sumsUrl, 'checksums', MAX_SUMS_BYTES)
    const [sums, signature] = await Promise.all([
      whole,
      signatureUrl === undefined
        ? undefined
        : this.#fetchFile(signatureUrl, 'checksums signature', MAX_SIGNATURE_BYTES),
      whole.then((file) => (this.#query.extend && Buffer.isBuffer(file) ? this.#askNamedIn(file) : undefined)),
    ])
    this.#checksums[index] = { sumsUrl, signatureUrl, sums, signature }
  }

  async #askNamedIn(sums: Buffer): Promise<void> {
    const named: Platform[] = []
    for (const [, os = '', arch = ''] of sums.toString('latin1').matchAll(ARCHIVE_LINE)) {
      if (!this.#claims.has(formatPlatform({ os, arch }))) named.push({ os, arch })
      if (named.length === MAX_PLATFORMS) break
    }
    await this.askAll(named, { guessed: true })
  }

  async #fetchFile(url: string, what: string, maxBytes: number): Promise<Buffer | MirrorError> {
    const { client, request } = this.#origin
    try {
      const answer = await client.fetchDocument({
        url,
        signal: this.#signal,
        hops: request.hops,
        accept: '*/*',
        maxBytes,
      })
      return answer.status === 200 ? answer.body : statusError(answer, what)
    } catch (error) {
      return this.#toMirrorError(error, url)
    }
  }

  #tooMany(): MirrorError {
    const { base } = this.#origin
    const reason = `it lists more than ${MAX_PLATFORMS} platforms for one version`
    const message = `${base.host} was not asked for all platforms of ${this.#query.spelling}: ${reason}`
    return new MirrorError('UPSTREAM_INVALID', message, { host: base.host, upstreamUrl: redactUrl(base), reason })
  }

  /** However a client words the end of our own patience, it is a time-out. */
  #toMirrorError(error: unknown, url: string | URL): MirrorError {
    if (isMirrorError(error)) return error
    if (this.#signal.aborted) {
      const upstreamUrl = redactUrl(url)
      const { host } = new URL(url)
      return new MirrorError('UPSTREAM_TIMEOUT', `no answer in time from ${upstreamUrl}`, { host, upstreamUrl }, error)
    }
    throw error
  }
}

function absent(platform: Platform, answer: DocumentAnswer): PlatformClaim & { kind: 'absent' } {
  const detail = findOriginText(answer.body, 'json')
  return { kind: 'absent', platform, upstreamUrl: redactUrl(answer.url), ...(detail === undefined ? {} : { detail }) }
}

/** `+` goes out as it is: real clients do so, and static hosts do not decode (client-contract A18). */
function encodeVersion(spelling: string): string {
  return encodeURIComponent(spelling).replaceAll('%2B', '+')
}
