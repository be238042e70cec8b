import { z } from 'zod'
import { isMirrorError, redactUrl } from '../errors.ts'
import type { Log } from '../log.ts'
import { parsePlatform } from '../protocol/platform.ts'
import { formatProviderAddress, type ProviderAddress, parseProviderAddress } from '../protocol/provider-address.ts'
import { parseVersion, type Version } from '../protocol/version.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'
import type { Catalogue } from './catalogue.ts'
import type { Candidate, ReleaseWithEvidence } from './release-adoption.ts'
import type { ArchiveRecord, Release } from './release-record.ts'
import type { ReleaseRecorder } from './release-recorder.ts'

/** What `ReleaseReplacement` is made of. */
export interface ReleaseReplacementParts {
  readonly catalogue: Catalogue
  readonly records: RecordStore
  readonly recorder: Pick<ReleaseRecorder, 'save'>
  /** Removes the record of an archive, then its blob and what is known of it, unless something else needs them. */
  readonly removeArchive: (address: ProviderAddress, archive: ArchiveRecord) => Promise<unknown>
  readonly log: Log
}

const Intent = z.object({ format: z.literal(1), generation: z.number().int().positive(), at: z.string() })

/**
 * Replaces a generation of a pinned version by another one. The one moment at which that happens is the write of the
 * release record: before it, a crash leaves the old generation; after it the new one, and archives of the old one that
 * nobody is given any more (`Catalogue`). A record `replacements/…` tells the next process to remove those.
 */
export class ReleaseReplacement {
  readonly #parts: ReleaseReplacementParts

  constructor(parts: ReleaseReplacementParts) {
    this.#parts = parts
  }

  /**
   * Call it while nothing else of this version can be recorded. That an old archive cannot be removed is logged, and left
   * to the next start.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`: then the old generation stays
   */
  async carryOut(candidate: Candidate, next: ReleaseWithEvidence): Promise<void> {
    const { records, recorder, log } = this.#parts
    const { address, listed, at } = candidate
    const { generation } = next.release
    await records.put(intentKey(address, listed.version), { format: 1, generation, at })
    const unsaved = await recorder.save(candidate, next)
    if (unsaved !== undefined) throw unsaved.error
    const release = `${formatProviderAddress(address)} ${listed.version}`
    log.warn({ release, generation }, 'replaced a release by what its origin offers now, as an operator accepted')
    await this.#retire(address, next.release, at)
  }

  /** Ends what a crash interrupted. To be called once, before anything is served. @throws MirrorError `STORAGE_FAILED` */
  async resume(): Promise<void> {
    const { catalogue, records, log } = this.#parts
    for await (const key of keysBelow(records, ['replacements'], 4)) {
      const [, hostname = '', namespace = '', type = '', name = ''] = key
      const version = parseVersion(name)
      const intent = Intent.safeParse(await records.get(key)).data
      if (version === undefined || intent === undefined) continue
      const address = parseProviderAddress({ hostname, namespace, type })
      const { release } = await catalogue.version(address, version)
      if (release?.generation === intent.generation) await this.#retire(address, release, intent.at)
      else await records.delete(key)
      log.info({ release: `${formatProviderAddress(address)} ${version}` }, 'ended an interrupted replacement')
    }
  }

  async #retire(address: ProviderAddress, release: Release, at: string): Promise<void> {
    const { catalogue, records, removeArchive, log } = this.#parts
    const { version, generation } = release
    try {
      await catalogue.savePin(address, version, { format: 1, generation, pinnedAt: at })
      for (const archive of (await catalogue.records.readRetired(address, version)).values()) {
        await removeArchive(address, archive)
      }
      await this.#renewArchives(address, release)
      await records.delete(intentKey(address, version))
    } catch (error) {
      if (!isMirrorError(error)) throw error
      log.error(
        { release: `${formatProviderAddress(address)} ${version}`, err: error },
        'could not remove everything of a replaced release; the next start tries again',
      )
    }
  }

  /** Archives whose bytes stayed the same are let in by the new evidence. */
  async #renewArchives(address: ProviderAddress, release: Release): Promise<void> {
    const { catalogue } = this.#parts
    const { archives } = await catalogue.version(address, release.version)
    for (const [name, archive] of archives) {
      const evidence = release.platforms[name]
      if (evidence?.digest !== archive.digest || archive.generation >= release.generation) continue
      const { filename, authentication, archiveUrl } = evidence
      const { generation } = release
      const renewed = { ...archive, filename, authentication, archiveUrl: redactUrl(archiveUrl), generation }
      await catalogue.saveArchive(address, parsePlatform(name), renewed)
    }
  }
}

function intentKey({ hostname, namespace, type }: ProviderAddress, version: Version): RecordKey {
  return ['replacements', hostname, namespace, type, version]
}

async function* keysBelow(records: RecordStore, prefix: RecordKey, depth: number): AsyncIterable<RecordKey> {
  for (const name of await records.children(prefix)) {
    const key = [...prefix, name]
    if (depth === 1) yield key
    else yield* keysBelow(records, key, depth - 1)
  }
}
