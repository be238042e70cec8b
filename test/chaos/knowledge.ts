import type { Period } from './timeline.ts'
import { without } from './timeline.ts'
import type { Content, Edition, TrueArchive, TrueProvider, TrueVersion } from './truth.ts'

/** An archive that a client has received: from then on it must be there. */
interface HeldArchive {
  readonly content: Content
  readonly archive: TrueArchive
  /** When the client had it. */
  readonly since: number
  /** Its blob was damaged, and nobody has received it since. */
  blobLost: boolean
  /** The life of the mirror in which, or after which, its record was damaged. */
  recordLostIn: number | undefined
}

interface KnownVersion {
  /** Somebody has asked for one of its archives: the mirror may hold some, and have pinned what it found. */
  asked: boolean
  readonly archives: Map<string, HeldArchive>
  pinned: Content | undefined
  pinnedSince: number
  pinLostIn: number | undefined
  releaseLostIn: number | undefined
}

/**
 * What the answers so far prove about what the mirror holds, less what was damaged on its disk. Records are read at
 * start only: one that is damaged while the mirror runs is lost to the next life, whatever this one still answers.
 */
export class Knowledge {
  readonly #versions = new Map<TrueVersion, KnownVersion>()
  readonly #trusted = new Map<string, Period[]>()
  readonly #trustLostIn = new Map<string, number>()
  readonly #lists = new Map<string, number>()

  /** Somebody is about to ask for an archive. */
  noteAsked(version: TrueVersion): void {
    this.#of(version).asked = true
  }

  /** A client has received an archive, or a part of it, of that content from the mirror in its `life`. */
  noteReceived(
    version: TrueVersion,
    { platform, content, life }: { platform: string; content: Content; life: number },
  ) {
    const known = this.#of(version)
    const archive = content.archives.get(platform)
    if (archive === undefined) throw new Error(`${content.name} has no archive for ${platform}`)
    const before = known.archives.get(platform)
    const lostIn = before?.recordLostIn
    const stillLost = lostIn !== undefined && life <= lostIn
    const intact = before !== undefined && !before.blobLost && lostIn === undefined
    const since = intact ? before.since : performance.now()
    const recordLostIn = stillLost ? lostIn : undefined
    if (this.pinned(version) === undefined) {
      known.pinned = content
      known.pinnedSince = performance.now()
      if (known.pinLostIn !== undefined && life > known.pinLostIn) known.pinLostIn = undefined
    }
    known.archives.set(platform, { content, archive, since, blobLost: false, recordLostIn })
  }

  /** A document showed a signed release, and the mirror could write it down. */
  noteSigned(provider: TrueProvider, life: number): void {
    const lostIn = this.#trustLostIn.get(provider.name)
    if (this.#isTrusted(provider) || (lostIn !== undefined && life <= lostIn)) return
    const now = performance.now()
    const end = Number.POSITIVE_INFINITY
    this.#trustedPeriods(provider).push({ from: now, certainFrom: now, certainTo: end, to: end })
  }

  /** A document showed the release again, from the origin or from its record. */
  noteDocument(version: TrueVersion, life: number): void {
    const known = this.#of(version)
    if (known.releaseLostIn !== undefined && life > known.releaseLostIn) known.releaseLostIn = undefined
  }

  /** A list of a provider was fetched after that moment and shown, and could be written down. */
  noteList({ name }: TrueProvider, moment: number): void {
    this.#lists.set(name, moment)
  }

  /** The list that the mirror can serve stale is not older than this; Infinity if it need not have one. */
  listedSince({ name }: TrueProvider): number {
    return this.#lists.get(name) ?? Number.POSITIVE_INFINITY
  }

  /** The list of one provider may be gone, or of all. */
  loseList(provider?: TrueProvider): void {
    if (provider === undefined) this.#lists.clear()
    else this.#lists.delete(provider.name)
  }

  /** True if an archive of the version was ever asked for. */
  wasAsked(version: TrueVersion): boolean {
    return this.#versions.get(version)?.asked === true
  }

  /** The content that the version was bound to before a moment, if any answer and no damage since tells. */
  pinned(version: TrueVersion, before = Number.POSITIVE_INFINITY): Content | undefined {
    const known = this.#versions.get(version)
    if (known === undefined || known.pinnedSince >= before) return undefined
    const proven = [...known.archives.values()].some(({ recordLostIn }) => recordLostIn === undefined)
    return proven || known.pinLostIn === undefined ? known.pinned : undefined
  }

  /** Platforms that the mirror must list and keep listing to those who ask after `before`. */
  recorded(version: TrueVersion, before: number): Map<string, TrueArchive> {
    const archives = [...(this.#versions.get(version)?.archives ?? [])]
    return new Map(
      archives.flatMap(([platform, { archive, since, recordLostIn }]) =>
        since < before && recordLostIn === undefined ? [[platform, archive] as const] : [],
      ),
    )
  }

  /** The archive that the mirror must serve to those who ask after `before`, whatever the origin does. */
  held(version: TrueVersion, platform: string, before: number): TrueArchive | undefined {
    const found = this.#versions.get(version)?.archives.get(platform)
    if (found === undefined || found.since >= before) return undefined
    return !found.blobLost && found.recordLostIn === undefined ? found.archive : undefined
  }

  /** True if the record of the release may be lost, so that its document depends on the origin. */
  mayLackRelease(version: TrueVersion): boolean {
    const known = this.#versions.get(version)
    return known === undefined || known.archives.size === 0 || known.releaseLostIn !== undefined
  }

  /** True if the unsigned edition may have been accepted by `moment`: it came before the mirror trusted a key. */
  mayAcceptUnsigned({ provider }: TrueVersion, { period }: Edition, moment: number): boolean {
    return without([{ from: period.from, to: moment }], this.#trustedPeriods(provider)).length > 0
  }

  /** The blob of that digest was damaged. */
  loseBlob(digest: string): void {
    for (const { archives } of this.#versions.values()) {
      for (const held of archives.values()) if (held.archive.digest === digest) held.blobLost = true
    }
  }

  /** A record was damaged in that life of the mirror, or between it and the next. */
  loseRecord(version: TrueVersion, record: 'release' | 'pin' | { readonly archive: string }, life: number): void {
    const known = this.#of(version)
    if (record === 'release') known.releaseLostIn = life
    else if (record === 'pin') known.pinLostIn = life
    else {
      const held = known.archives.get(record.archive)
      if (held !== undefined) held.recordLostIn = life
    }
  }

  /** The record that a provider was signed was damaged. */
  loseTrust(provider: TrueProvider, life: number): void {
    const last = this.#trustedPeriods(provider).at(-1)
    const now = performance.now()
    if (last?.to === Number.POSITIVE_INFINITY) Object.assign(last, { certainTo: now, to: now })
    this.#trustLostIn.set(provider.name, life)
  }

  /** All held archives, for damage and final checks. */
  *all(): Generator<{ version: TrueVersion; platform: string; archive: TrueArchive }> {
    for (const [version, { archives }] of this.#versions) {
      for (const [platform, { archive }] of archives) yield { version, platform, archive }
    }
  }

  #isTrusted(provider: TrueProvider): boolean {
    return this.#trustedPeriods(provider).at(-1)?.to === Number.POSITIVE_INFINITY
  }

  #trustedPeriods({ name }: TrueProvider): Period[] {
    const periods = this.#trusted.get(name) ?? []
    this.#trusted.set(name, periods)
    return periods
  }

  #of(version: TrueVersion): KnownVersion {
    const found = this.#versions.get(version)
    if (found !== undefined) return found
    const known: KnownVersion = {
      asked: false,
      archives: new Map(),
      pinned: undefined,
      pinnedSince: Number.POSITIVE_INFINITY,
      pinLostIn: undefined,
      releaseLostIn: undefined,
    }
    this.#versions.set(version, known)
    return known
  }
}
