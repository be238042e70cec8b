import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { IndexDocument, VersionDocument } from '../src/protocol/network-mirror.ts'
import { assertVersion, sortByVersion } from '../src/protocol/version.ts'
import { CURRENT_PLATFORM } from '../test/e2e/terraform-cli.ts'
import { type Client, INSTALL_DIR, LOCK_FILE, type Requirement } from './client.ts'
import type { Mirror } from './mirror.ts'

/** Stands in for the CLI where there is none: asks the mirror as it does, and checks the digest as it does. */
export function createProtocolClient(options: {
  readonly mirror: Mirror
  readonly requirements: readonly Requirement[]
  /** A path as the shown commands write it. */
  readonly shorten: (path: string) => string
}): Client {
  const { mirror, requirements, shorten } = options
  return {
    program: 'demo',
    name: 'this program itself (neither terraform nor tofu is on the path)',
    setUp: `alias get='curl --fail --cacert ${shorten(mirror.caFile)}'`,
    command: () => undefined,
    async install(folder, { upgrade }) {
      const transcript: string[] = []
      try {
        const locked = upgrade ? {} : await readLock(folder)
        const chosen: Record<string, Locked> = {}
        for (const { source } of requirements) {
          chosen[source] = await installOne({ mirror, folder, source, locked: locked[source], transcript })
        }
        await writeFile(join(folder, LOCK_FILE), formatLock(chosen))
        return { ok: true, transcript }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return { ok: false, transcript: [...transcript, error.message] }
      }
    },
  }
}

/** What the mirror, or the digest, does not allow. */
class Refusal extends Error {}

interface Locked {
  readonly version: string
  readonly hashes: readonly string[]
}

async function installOne(task: {
  mirror: Mirror
  folder: string
  source: string
  locked: Locked | undefined
  transcript: string[]
}): Promise<Locked> {
  const { mirror, folder, source, locked, transcript } = task
  const get = async (path: string): Promise<{ url: string; body: Buffer }> => {
    const { url, status, body } = await mirror.ask(path)
    transcript.push(`get ${url}`, `  ${status}, ${body.length} bytes`)
    if (status !== 200) throw new Refusal(`  ${JSON.parse(body.toString()).error}`)
    return { url, body }
  }
  const { versions } = JSON.parse((await get(`${source}/index.json`)).body.toString()) as IndexDocument
  const newest = sortByVersion(Object.keys(versions).map(assertVersion), (version) => version).at(-1)
  const version = locked?.version ?? newest
  if (version === undefined) throw new Refusal(`  ${source} has no version`)
  const document = await get(`${source}/${version}.json`)
  const { archives } = JSON.parse(document.body.toString()) as VersionDocument
  const archive = archives[CURRENT_PLATFORM]
  if (archive === undefined) throw new Refusal(`  ${source} ${version} is not there for ${CURRENT_PLATFORM}`)
  const { body } = await get(new URL(archive.url, document.url).href)
  const digest = `zh:${createHash('sha256').update(body).digest('hex')}`
  const accepted: readonly string[] = locked?.hashes ?? archive.hashes
  if (!accepted.includes(digest)) throw new Refusal(`  its digest is ${digest}, which nobody stated`)
  transcript.push(`  its digest is the stated ${digest}`)
  const file = join(folder, INSTALL_DIR, source, version, CURRENT_PLATFORM, 'archive.zip')
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, body)
  return { version, hashes: [digest] }
}

async function readLock(folder: string): Promise<Record<string, Locked | undefined>> {
  const text = await readFile(join(folder, LOCK_FILE), 'utf8').catch(() => '')
  const blocks = [...text.matchAll(/provider "([^"]+)" \{\n {2}version = "([^"]+)"\n {2}hashes = \["([^"]+)"\]/g)]
  return Object.fromEntries(
    blocks.map(([, source = '', version = '', hash = '']) => [source, { version, hashes: [hash] }]),
  )
}

function formatLock(chosen: Readonly<Record<string, Locked>>): string {
  const blocks = Object.entries(chosen).map(
    ([source, { version, hashes }]) =>
      `provider "${source}" {\n  version = "${version}"\n  hashes = ["${hashes.join('", "')}"]\n}\n`,
  )
  return blocks.join('\n')
}
