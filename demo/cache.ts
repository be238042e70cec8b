import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ArchiveRecord, Release } from '../src/mirror/release-record.ts'
import { listPaths } from './paths.ts'

/** Reads what the mirror keeps in its data folder, as its own records tell it. */
export class Cache {
  readonly #dataDir: string

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  /** The records of all archives that are held. */
  async archives(): Promise<ArchiveRecord[]> {
    const texts = await this.#readAll('records/providers/*/*/*/versions/*/archives/*.json')
    return texts.map((text) => ArchiveRecord.parse(JSON.parse(text)))
  }

  /** The records of all releases: what the origin said about a version, and who signed it. */
  async releases(): Promise<Release[]> {
    const texts = await this.#readAll('records/providers/*/*/*/versions/*/release.json')
    return texts.map((text) => Release.parse(JSON.parse(text)))
  }

  /** Digest (which is the name) and size in bytes of every blob. */
  async blobs(): Promise<{ digest: string; size: number }[]> {
    const found: { digest: string; size: number }[] = []
    for (const path of await listPaths('blobs/sha256/*/*', this.#dataDir)) {
      const { size } = await stat(join(this.#dataDir, path))
      found.push({ digest: path.slice(path.lastIndexOf('/') + 1), size })
    }
    return found
  }

  async #readAll(pattern: string): Promise<string[]> {
    const texts: string[] = []
    for (const path of await listPaths(pattern, this.#dataDir)) {
      texts.push(await readFile(join(this.#dataDir, path), 'utf8'))
    }
    return texts
  }
}
