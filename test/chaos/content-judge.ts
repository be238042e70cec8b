import { Violation } from './answer-format.ts'
import type { Knowledge } from './knowledge.ts'
import { isZip } from './question.ts'
import type { Span } from './timeline.ts'
import type { Content, Edition, TrueVersion } from './truth.ts'

/** Finds what digests belong to, and whether the mirror may serve that. */
export class ContentJudge {
  readonly #knowledge: Knowledge

  constructor(knowledge: Knowledge) {
    this.#knowledge = knowledge
  }

  /**
   * The one content that all these digests belong to, published and acceptable at the time, and the pinned one.
   * @throws Violation if there is none
   */
  find(
    version: TrueVersion,
    found: ReadonlyMap<string, { digest: string }>,
    { span, asArchive }: { span: Span; asArchive: boolean },
  ): Content {
    const editions = version.editions.filter((edition) => this.#mayAccept(version, edition, { span, asArchive }))
    const fitting = editions.find(({ content }) =>
      [...found].every(
        ([platform, { digest }]) =>
          content.archives.get(platform)?.digest === digest &&
          editions.some(
            (each) =>
              each.content === content &&
              each.platforms.includes(platform) &&
              !each.refusedPlatforms.includes(platform),
          ),
      ),
    )
    if (fitting === undefined) {
      const digests = [...found].map(([platform, { digest }]) => `${platform} ${digest}`)
      throw new Violation(`no acceptable edition of ${version.name} has all of ${digests.join(', ')}`)
    }
    // Who serves an archive has pinned it: of two contents one is wrong, whoever asked first.
    const pinned = this.#knowledge.pinned(version, asArchive ? undefined : span.from)
    if (pinned !== undefined && pinned !== fitting.content) {
      throw new Violation(`${version.name} is pinned to ${pinned.name}, and this is ${fitting.content.name}`)
    }
    return fitting.content
  }

  #mayAccept(version: TrueVersion, edition: Edition, how: { span: Span; asArchive: boolean }): boolean {
    if (edition.period.from > how.span.to) return false
    if (edition.verdict !== 'unsigned') return edition.verdict === 'accepted'
    // On the word of a checksum alone nobody gets what does not even unpack.
    if (how.asArchive && !isZip(edition)) return false
    return this.#knowledge.mayAcceptUnsigned(version, edition, how.span.to)
  }
}
