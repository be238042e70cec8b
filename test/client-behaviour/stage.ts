import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import type { z } from 'zod'
import { type Answer, startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { TestClock } from '../e2e/test-clock.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import type { JsonDocument, Publication, Release } from '../origin/release.ts'
import { vector } from '../verify/vectors.ts'
import { IndexDocument, readDocument, VersionDocument } from './mirror-documents.ts'

/** Signatures are required here. */
export const HOST = 'registry.example.test'
/** Providers without a key are accepted here. */
export const LENIENT_HOST = 'other.example.test'
/** For the case that makes a whole host unusable for a while. */
export const LIMITED_HOST = 'cdn.example.test'
export const PLATFORM = 'linux_amd64'
export const VERSION = '1.0.0'

/** A package as `VERSION.json` lists it. */
export type ListedPackage = z.output<typeof VersionDocument>['archives'][string]

/** A real mirror in front of an origin that plays whatever a case needs, and a client that validates all it is told. */
export interface Stage extends AsyncDisposable {
  readonly origin: TestOrigin
  readonly mirror: TestMirror
  /** The clock of the mirror. */
  readonly clock: TestClock
  /** Publishes version 1.0.0 of a provider, unless told otherwise. */
  publish(publication: Partial<Publication> & Pick<Publication, 'provider'>): Promise<Release>
  /** The versions that `index.json` lists, in its order. */
  versions(provider: string): Promise<string[]>
  /** What `VERSION.json` lists, by platform. */
  packages(provider: string, version?: string): Promise<Record<string, ListedPackage>>
  /** The archive behind the link of `VERSION.json`, resolved as a client does. */
  archive(provider: string, version?: string, platform?: string): Promise<Answer>
  /** Index, document and archive, as an installation asks for them. The archive is one that the document vouches for. */
  install(provider: string, version?: string): Promise<Answer>
}

/** Starts both. */
export async function openStage(): Promise<Stage> {
  const origin = await startOrigin()
  const clock = new TestClock()
  const mirror = await startMirror({
    origin,
    now: clock.now,
    config: {
      upstream: { retries: 1 },
      origins: { [LENIENT_HOST]: { verification: { signatures: 'whenListed' } } },
    },
  })
  return new TwoSidedStage(origin, mirror, clock)
}

class TwoSidedStage implements Stage {
  readonly origin: TestOrigin
  readonly mirror: TestMirror
  readonly clock: TestClock

  constructor(origin: TestOrigin, mirror: TestMirror, clock: TestClock) {
    this.origin = origin
    this.mirror = mirror
    this.clock = clock
  }

  publish(publication: Partial<Publication> & Pick<Publication, 'provider'>): Promise<Release> {
    return this.origin.publish({ version: VERSION, platforms: [PLATFORM, 'darwin_arm64'], ...publication })
  }

  async versions(provider: string): Promise<string[]> {
    const answer = await this.mirror.ask(`${pathOf(provider)}/index.json`)
    return Object.keys(readDocument(answer, IndexDocument).versions)
  }

  async packages(provider: string, version = VERSION): Promise<Record<string, ListedPackage>> {
    const answer = await this.mirror.ask(`${pathOf(provider)}/${encodeURIComponent(version)}.json`)
    return readDocument(answer, VersionDocument).archives
  }

  async archive(provider: string, version = VERSION, platform = PLATFORM): Promise<Answer> {
    const listed = (await this.packages(provider, version))[platform]
    if (listed === undefined) throw new Error(`${provider} ${version} is not listed for ${platform}`)
    const document = new URL(`${pathOf(provider)}/${encodeURIComponent(version)}.json`, this.mirror.url)
    return this.mirror.ask(new URL(listed.url, document).pathname)
  }

  async install(provider: string, version = VERSION): Promise<Answer> {
    expect(await this.versions(provider)).toContain(version)
    const answer = await this.archive(provider, version)
    expect(answer.status, answer.body.toString('latin1').slice(0, 300)).toBe(200)
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    const listed = (await this.packages(provider, version))[PLATFORM]
    expect(listed?.hashes[0]).toBe(zipHash(answer.body))
    return answer
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mirror[Symbol.asyncDispose]()
    await this.origin[Symbol.asyncDispose]()
  }
}

/** Path of a provider at the mirror; its first host stands for none, as at the origin. */
function pathOf(provider: string): string {
  const address = provider.split('/').length === 2 ? `${HOST}/${provider}` : provider
  return `/providers/${address.split('/').map(encodeURIComponent).join('/')}`
}

/** `zh:` of a zip, computed from its bytes. */
export function zipHash(bytes: Uint8Array): string {
  return `zh:${createHash('sha256').update(bytes).digest('hex')}`
}

/** The zip of a recorded case. */
export function recordedZip(archive: string): { readonly path: string } {
  const name = `terraform-provider-${archive}_1.0.0_linux_amd64.zip`
  return { path: vector(`archives/provider-zip/${name}`).pathname }
}

/** Changes each download document. */
export function withDocument(changes: JsonDocument): Pick<Publication, 'document'> {
  return { document: (document) => ({ ...document, ...changes }) }
}
