import { expect } from 'vitest'
import type { Answer, TestMirror } from './mirror-fixture.ts'
import { askDownload, askVersions, registryArchivePath } from './registry-door.ts'

/** What both doors answer; `empty` is 200 with `{"archives":{}}`. */
export interface Expected {
  /** `index.json` and `versions`. */
  readonly index: number
  readonly version: number | 'empty'
  /** Default: as `version`, and 404 where that is empty. */
  readonly download?: number
  /** Of either door. */
  readonly archive: number
  /** Code in the body of every answer that is an error. */
  readonly code?: string
}

/** What they are asked for; by default `acme/widget` 1.0.0 for `linux_amd64`. */
export interface Asked {
  readonly provider?: string
  readonly version?: string
  readonly platform?: string
}

async function askAll(mirror: TestMirror, asked: Asked) {
  const { provider = 'acme/widget', version = '1.0.0', platform = 'linux_amd64' } = asked
  const [index, document, archive, versions, download, registryArchive] = await Promise.all([
    mirror.index(provider),
    mirror.version(provider, version),
    mirror.archive(provider, version, platform),
    askVersions(mirror, provider),
    askDownload(mirror, provider, version, platform),
    mirror.ask(registryArchivePath(provider, version, platform)),
  ])
  return { index, version: document, archive, versions, download, registryArchive }
}

/** Asks all routes, and looks at status, type, marker, and at what the body of an error must have. */
export async function expectAnswers(mirror: TestMirror, asked: Asked, expected: Expected): Promise<void> {
  const answers = await askAll(mirror, asked)
  const { index, version, archive, versions, download, registryArchive } = answers
  const isEmpty = version.status === 200 && version.body.toString() === '{"archives":{}}'
  expect({
    index: index.status,
    version: isEmpty ? 'empty' : version.status,
    archive: archive.status,
    versions: versions.status,
    download: download.status,
    registryArchive: registryArchive.status,
  }).toEqual({
    index: expected.index,
    version: expected.version,
    archive: expected.archive,
    versions: expected.index,
    download: expected.download ?? (expected.version === 'empty' ? 404 : expected.version),
    registryArchive: expected.archive,
  })
  for (const { headers } of [versions, download]) expect(headers['content-type']).toMatch(/^application\/json/)
  expect(index.headers['content-type']).toMatch(/^application\/json/)
  expect(version.headers['content-type']).toMatch(/^application\/json/)
  for (const answer of Object.values(answers)) {
    expect(answer.headers['x-request-id']).toBeTruthy()
    if (answer.status >= 400) expectErrorBody(answer, expected.code)
    else expect(answer.headers['terramirror-cache']).toMatch(/^(hit|miss|coalesced|stale|negative)$/)
    if (answer.status === 503) expect(Number(answer.headers['retry-after'])).toBeLessThanOrEqual(3)
  }
}

function expectErrorBody(answer: Answer, code: string | undefined): void {
  expect(answer.headers['content-type']).toBe('application/json')
  const body = answer.json()
  expect(body.error).toMatch(/\w+ \w+/)
  if (code === undefined) expect(body.code).toMatch(/^[A-Z0-9_]+$/)
  else expect(body.code).toBe(code)
  expect(body.request_id).toBe(answer.headers['x-request-id'])
  if (body.upstream_url !== undefined) expect(body.upstream_url).not.toMatch(/[?#@]/)
}

/** Makes the mirror hold one archive, with all that belongs to it. */
export async function warm(mirror: TestMirror, provider = 'acme/widget', version = '1.0.0'): Promise<void> {
  expect((await mirror.index(provider)).status).toBe(200)
  expect((await mirror.version(provider, version)).status).toBe(200)
  expect((await mirror.archive(provider, version, 'linux_amd64')).status).toBe(200)
}

/** The versions that `index.json` of `acme/widget` lists. */
export async function versionsIn(mirror: TestMirror): Promise<string[]> {
  const index = await mirror.index('acme/widget')
  expect(index.status).toBe(200)
  return Object.keys(index.json().versions)
}
