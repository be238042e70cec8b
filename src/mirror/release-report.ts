import type { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import type { AuthenticatedRelease } from '../verify/authenticate-release.ts'
import type { MirrorObserver } from './observer.ts'

/** Counts and logs what came of judging a release. `release` is its name for people. */
export function reportRelease(
  release: string,
  { packages, refused, unanswered, absent, notes }: AuthenticatedRelease,
  { observer, log }: { observer: MirrorObserver; log: Log },
): void {
  for (const { authentication } of packages) observer.judged(authentication.rule)
  for (const { error } of refused) observer.judged(error.code)
  warnOnce(refused, (line) => log.warn({ release, ...line }, 'refused platforms of a release'))
  warnOnce(unanswered, (line) => log.warn({ release, ...line }, 'no answer for platforms of a release'))
  for (const { platform, detail } of absent) {
    log.info({ release, platform: formatPlatform(platform), detail }, 'the origin does not publish a listed platform')
  }
  for (const note of notes) log[note.level]({ release }, note.text)
}

/** One line for all platforms that have the same trouble: they mostly do. */
function warnOnce(
  troubles: readonly { platform: Platform; error: MirrorError }[],
  warn: (line: { platforms: string; code: string; err: MirrorError | undefined }) => void,
): void {
  for (const [code, alike] of Map.groupBy(troubles, ({ error }) => error.code)) {
    const platforms = alike.map(({ platform }) => formatPlatform(platform)).join(' ')
    warn({ platforms, code, err: alike[0]?.error })
  }
}
