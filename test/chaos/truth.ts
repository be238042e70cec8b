import type { Period, Span } from './timeline.ts'
import { touches, without } from './timeline.ts'

/** One archive as it was published, wherever and in whichever edition. */
export interface TrueArchive {
  readonly bytes: Buffer
  /** Lower-case hexadecimal. */
  readonly digest: string
  /** Undefined if the bytes are no zip. */
  readonly h1: string | undefined
}

/** One generation of bytes of a version. Editions with the same content differ in platforms or signatures only. */
export interface Content {
  readonly name: string
  readonly archives: ReadonlyMap<string, TrueArchive>
}

/** What a mirror has to make of an edition. `unsigned`: accepted unless the provider was seen signed before. */
export type Verdict = 'accepted' | 'refused' | 'unsigned'

/** One state of a version at the origin. */
export interface Edition {
  readonly content: Content
  readonly platforms: readonly string[]
  readonly verdict: Verdict
  /** Platforms whose document contradicts SHA256SUMS. */
  readonly refusedPlatforms: readonly string[]
  readonly signed: boolean
  readonly period: Period
}

/** One version of a provider, through all of its history at the origin. */
export class TrueVersion {
  readonly provider: TrueProvider
  /** Canonical. */
  readonly version: string
  /** As the origin writes it. */
  readonly spelling: string
  readonly editions: Edition[] = []
  /** When the origin listed it. */
  readonly listed: Period[] = []

  constructor(provider: TrueProvider, version: string, spelling: string) {
    this.provider = provider
    this.version = version
    this.spelling = spelling
  }

  get name(): string {
    return `${this.provider.name} ${this.version}`
  }

  /** What the origin publishes now. */
  get current(): Edition | undefined {
    const last = this.editions.at(-1)
    return last !== undefined && last.period.to === Number.POSITIVE_INFINITY ? last : undefined
  }

  /** Every platform that it ever had, in the order of their first publication. */
  get platforms(): string[] {
    return [...new Set(this.editions.flatMap(({ platforms }) => platforms))]
  }

  /** The editions that stood at the origin at some moment of the spans. */
  during(spans: readonly Span[]): Edition[] {
    return this.editions.filter(({ period }) => touches(period, spans))
  }

  /** True if the origin may have had nothing of it at a moment of the spans. */
  mayBeGone(spans: readonly Span[]): boolean {
    const periods = this.editions.map(({ period }) => period)
    return without(spans, periods).length > 0
  }

  /** True if it may have been missing from the origin's list at a moment of the spans. */
  mayBeUnlisted(spans: readonly Span[]): boolean {
    return without(spans, this.listed).length > 0
  }
}

/** One provider address, through all of its history at the origin. */
export class TrueProvider {
  readonly host: string
  readonly namespace: string
  readonly type: string
  readonly versions = new Map<string, TrueVersion>()
  /** When the origin knew the provider, be it without any version. */
  readonly known: Period[] = []

  constructor(name: string) {
    const [host = '', namespace = '', type = ''] = name.split('/')
    this.host = host
    this.namespace = namespace
    this.type = type
  }

  get name(): string {
    return `${this.host}/${this.namespace}/${this.type}`
  }

  /** The version, made if it has never been heard of. */
  version(version: string, spelling = version): TrueVersion {
    const found = this.versions.get(version) ?? new TrueVersion(this, version, spelling)
    this.versions.set(version, found)
    return found
  }

  /** True if the origin may have said 404 to its list at a moment of the spans. */
  mayBeUnknown(spans: readonly Span[]): boolean {
    return without(spans, this.known).length > 0
  }

  /** True if a signed edition was published by that moment: the mirror may have seen it. */
  mayBeTrusted(moment: number): boolean {
    return [...this.versions.values()].some(({ editions }) =>
      editions.some(({ signed, verdict, period }) => signed && verdict === 'accepted' && period.from <= moment),
    )
  }
}
