import { expect } from 'vitest'
import type { Answer, Ask, TestMirror } from './mirror-fixture.ts'
import { HOST } from './mirror-workspace.ts'
import { hostConfig } from './terraform-cli.ts'

/** Base URL of a mirror's provider registry door, as clients are told it; `base` is where the mirror is reached. */
export function registryBase(base: string, host = HOST): string {
  return `${base}v1/providers/${host}/`
}

/** A CLI configuration that leads all that it asks of a host through a mirror, both services as users are told. */
export function registryConfig(base: string, host = HOST): string {
  return hostConfig(host, { 'providers.v1': registryBase(base, host), 'modules.v1': `${base}v1/modules/${host}/` })
}

/** `versions` of `acme/widget`, or `other.example.test/acme/widget`. */
export function askVersions(mirror: TestMirror, provider: string, ask?: Ask): Promise<Answer> {
  return mirror.ask(`${providerPath(provider)}/versions`, ask)
}

/** Path of the `download` document. */
export function downloadPath(provider: string, version: string, platform: string): string {
  return `${providerPath(provider)}/${encodeURIComponent(version)}/download/${platform.replace('_', '/')}`
}

/** The `download` document. */
export function askDownload(
  mirror: TestMirror,
  provider: string,
  version: string,
  platform: string,
  ask?: Ask,
): Promise<Answer> {
  return mirror.ask(downloadPath(provider, version, platform), ask)
}

/** Path of an archive, without a document that names it. */
export function registryArchivePath(provider: string, version: string, platform: string): string {
  return `${providerPath(provider)}/${encodeURIComponent(version)}/archives/${platform}/archive.zip`
}

/** Where a link in a document leads, as a path of the mirror. Fails if it leads to another host. */
export function follow(documentPath: string, link: unknown): string {
  const document = new URL(documentPath, 'https://mirror.example.test')
  if (typeof link !== 'string') throw new Error(`not a link: ${JSON.stringify(link)}`)
  const url = new URL(link, document)
  expect([url.origin, url.search, url.hash]).toEqual([document.origin, '', ''])
  return url.pathname
}

/** What a client judges an archive by, byte for byte. */
export interface FetchedEvidence {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents whose shape is what they test
  readonly document: any
  readonly sums: Answer
  readonly signature: Answer
  /** Where the document leads for the archive. */
  readonly archivePath: string
}

/** Asks as a client does: the document, then the SHA256SUMS and the signature that it names. */
export async function fetchEvidence(
  mirror: TestMirror,
  provider: string,
  version: string,
  platform: string,
): Promise<FetchedEvidence> {
  const path = downloadPath(provider, version, platform)
  const answer = await mirror.ask(path)
  expect(answer.status, answer.body.toString()).toBe(200)
  const document = answer.json()
  const get = (link: unknown): Promise<Answer> => mirror.ask(follow(path, link))
  return {
    document,
    sums: await get(document.shasums_url),
    signature: await get(document.shasums_signature_url),
    archivePath: follow(path, document.download_url),
  }
}

/** All that a client fetches before it installs. */
export async function fetchPackage(
  mirror: TestMirror,
  provider: string,
  version: string,
  platform: string,
): Promise<FetchedEvidence & { readonly archive: Answer }> {
  const evidence = await fetchEvidence(mirror, provider, version, platform)
  return { ...evidence, archive: await mirror.ask(evidence.archivePath) }
}

function providerPath(provider: string): string {
  const full = provider.split('/').length === 2 ? `${HOST}/${provider}` : provider
  return `/v1/providers/${full.split('/').map(encodeURIComponent).join('/').replaceAll('%3A', ':')}`
}
