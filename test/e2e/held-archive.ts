import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { TestOrigin } from '../origin/origin.ts'
import type { PublishedPackage } from '../origin/release.ts'
import { type Answer, type MirrorOptions, startMirror, type TestMirror } from './mirror-fixture.ts'

export const PROVIDER = 'acme/widget'
export const VERSION = '1.0.0'
export const PLATFORM = 'linux_amd64'

/** Publishes `PROVIDER` with an archive of 1 MB for each platform, and returns the one of `PLATFORM`. */
export async function publishArchive(origin: TestOrigin): Promise<PublishedPackage> {
  const release = await origin.publish({ provider: PROVIDER, version: VERSION, archiveBytes: 1_000_000 })
  return release.package(PLATFORM)
}

/** A mirror that holds the archive and has served it; the origin's counts begin anew. */
export async function startWarmMirror(options: MirrorOptions, archive: PublishedPackage): Promise<TestMirror> {
  const mirror = await startMirror(options)
  await mirror.index(PROVIDER)
  await mirror.version(PROVIDER, VERSION)
  assertRight(await askArchive(mirror), archive)
  options.origin.reset()
  return mirror
}

export function askArchive(mirror: TestMirror): Promise<Answer> {
  return mirror.archive(PROVIDER, VERSION, PLATFORM)
}

/** The answer is the whole archive, byte for byte. */
export function assertRight(answer: Answer, archive: PublishedPackage): void {
  expect(answer.status).toBe(200)
  expect(answer.headers['content-length']).toBe(String(archive.body.size))
  expect(sha256(answer.body)).toBe(archive.sha256)
}

/** What VERSION.json says of the archive's digest is right. */
export async function assertListed(mirror: TestMirror, archive: PublishedPackage): Promise<void> {
  const document = await mirror.version(PROVIDER, VERSION)
  expect(document.status).toBe(200)
  expect(document.json().archives[PLATFORM].hashes[0]).toBe(`zh:${archive.sha256}`)
}

/** Where a blob lies in a data folder. */
export function blobFile({ dataDir }: TestMirror, digest: string): string {
  return join(dataDir, 'blobs', 'sha256', digest.slice(0, 2), digest)
}

/** Lower-case hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
