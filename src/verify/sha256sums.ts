import { MirrorError } from '../errors.ts'
import { parseSha256, type Sha256 } from '../protocol/package-hash.ts'

/** A parsed SHA256SUMS: each file name with its one digest. Says nothing about who signed it. */
export interface Sha256Sums {
  /** The digest of exactly this file name. Names are compared byte for byte, never built or folded. */
  find(filename: string): Sha256 | undefined
  readonly entries: ReadonlyMap<string, Sha256>
}

/** Digest, blanks, the binary mark of coreutils, `./`, and the rest of the line as the name. */
const LINE = /^([0-9a-fA-F]{64})[ \t]+\*?(?:\.\/)*(\S.*)$/

/**
 * Parses the output of `sha256sum` and of the many tools that imitate it (field-reports B27): any line ends, one or
 * more blanks or ` *` between digest and name, upper-case digits, `./` before the name, a byte order mark. Lines that
 * are not a digest and a name (comments, blank lines, foreign lines) are skipped. Takes time linear in the length.
 *
 * `upstreamUrl` is where the bytes came from, already redacted, for the error.
 *
 * @throws MirrorError `CHECKSUMS_INVALID` if one name has two different digests, or if no line is usable
 */
export function parseSha256Sums(bytes: Uint8Array, upstreamUrl?: string): Sha256Sums {
  const entries = new Map<string, Sha256>()
  for (const line of new TextDecoder().decode(bytes).split(/[\r\n]+/)) {
    const [, hex = '', filename = ''] = LINE.exec(line.trim()) ?? []
    const digest = parseSha256(hex)
    if (digest === undefined) continue
    const known = entries.get(filename)
    if (known !== undefined && known !== digest) {
      throw invalid(`it gives ${filename.slice(0, 200)} two digests, ${known} and ${digest}`, upstreamUrl)
    }
    entries.set(filename, digest)
  }
  if (entries.size === 0) throw invalid('no line of it is a digest and a file name', upstreamUrl)
  return { entries, find: (filename) => entries.get(filename) }
}

function invalid(reason: string, upstreamUrl: string | undefined): MirrorError {
  const from = upstreamUrl === undefined ? '' : ` from ${upstreamUrl}`
  return new MirrorError('CHECKSUMS_INVALID', `SHA256SUMS${from} is not usable: ${reason}`, {
    reason,
    ...(upstreamUrl === undefined ? {} : { upstreamUrl }),
  })
}
