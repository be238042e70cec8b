import { createCipheriv, createHash } from 'node:crypto'
import { createOriginKey, type OriginKey } from '../origin/origin-key.ts'
import { zipArchive } from '../origin/provider-archive.ts'
import type { Publication } from '../origin/release.ts'
import { readAll } from '../origin/reply.ts'
import type { Content, TrueArchive, Verdict } from './truth.ts'

/** Who signs an edition, and how badly. */
export type Signing = 'good' | 'other key' | 'unsigned' | 'wrong key' | 'revoked key' | 'two digests' | 'one bad shasum'

/** What the archives of a version are like. */
export type Size = 'small' | 'large' | 'no zip'

/** Keys beside that of the origin. */
export type Signers = Readonly<Record<'other' | 'stranger' | 'revoked', OriginKey>>

/** Providers of this host may be unsigned; the mirror is configured so. */
export const LENIENT_HOST = 'cdn.example.test'

export async function createSigners(): Promise<Signers> {
  const [other, stranger, revoked] = await Promise.all([
    createOriginKey(),
    createOriginKey(),
    createOriginKey({ revoked: true }),
  ])
  return { other, stranger, revoked }
}

/** Archives for all these platforms, whose bytes follow from the seed and the name. */
export async function createContent(
  name: string,
  { seed, platforms, size }: { seed: number; platforms: readonly string[]; size: Size },
): Promise<Content> {
  const archives = new Map<string, TrueArchive>()
  for (const platform of platforms)
    archives.set(platform, await createArchive(`seed ${seed}: ${name} ${platform}`, size))
  return { name, archives }
}

/** The part of a publication that is about signatures; `bad`: platforms whose document contradicts SHA256SUMS. */
export function signedBy(signers: Signers, signing: Signing, bad: readonly string[]): Partial<Publication> {
  switch (signing) {
    case 'good':
      return {}
    case 'other key':
      return { key: signers.other }
    case 'unsigned':
      return { key: null }
    case 'wrong key':
      return { listedKeys: [signers.stranger] }
    case 'revoked key':
      return { key: signers.revoked }
    case 'two digests':
      return { sums: (text) => `${text}${text.replace(/^./gm, (digit) => (digit === '0' ? '1' : '0'))}` }
    case 'one bad shasum':
      return {
        document: (document, platform) => (bad.includes(platform) ? { ...document, shasum: 'a'.repeat(64) } : document),
      }
  }
}

/** True if the signature is one that must be accepted. */
export function isSigned(signing: Signing): boolean {
  return signing === 'good' || signing === 'other key' || signing === 'one bad shasum'
}

/** What a mirror has to make of an edition with that signature at that host. */
export function verdictOf(signing: Signing, host: string): Verdict {
  if (isSigned(signing)) return 'accepted'
  return signing === 'unsigned' && host === LENIENT_HOST ? 'unsigned' : 'refused'
}

async function createArchive(identity: string, size: Size): Promise<TrueArchive> {
  const program = Buffer.from(`#!/bin/sh\n# ${identity}\nexit 1\n`)
  if (size === 'no zip') return { bytes: program, digest: sha256(program), h1: undefined }
  const {
    body,
    sha256: digest,
    h1,
  } = await zipArchive(size === 'small' ? { program } : { program, data: noise(identity) })
  return { bytes: await readAll(body), digest, h1 }
}

/** 100 kB to 1.1 MB that do not compress. */
function noise(identity: string): Buffer {
  const key = createHash('sha256').update(identity).digest()
  const length = 100_000 + 4_000 * key.readUInt8(0)
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(length))
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
