import { isMirrorError, MirrorError } from '../../../errors.ts'
import { refusedSource } from '../../../protocol/module-source.ts'
import { placeOf } from '../../failure.ts'
import { GitFailed } from './git-command.ts'

const URLS = /\b[a-z+]+:\/\/\S+/gi

type Explain = (place: { host: string; upstreamUrl: string }, said: string) => MirrorError

/** What git says, and what it means. The first that fits. */
const MEANINGS: readonly (readonly [pattern: RegExp, explain: Explain])[] = [
  [
    /no space left on device|disk quota exceeded/i,
    (place) =>
      new MirrorError('STORAGE_FULL', `Cannot fetch ${place.upstreamUrl}: the disk is full.`, { operation: 'fetch' }),
  ],
  [
    /cannot run ssh|\bssh: (?:command )?not found/i,
    () => refusedSource('git::ssh', 'there is no `ssh` on the machine of this mirror; install it'),
  ],
  [
    /protocol .* (?:not supported|disabled)|transport .* not allowed/i,
    (place, said) =>
      new MirrorError('UPSTREAM_REFUSED', `Refused to follow ${place.upstreamUrl}: only https and ssh are allowed`, {
        ...place,
        reason: said,
      }),
  ],
  [
    /alternate disabled/i,
    (place) => {
      const reason = 'its objects are at another place (http-alternates), and those are not followed'
      return new MirrorError('UPSTREAM_REFUSED', `Refused to fetch ${place.upstreamUrl}: ${reason}`, {
        ...place,
        reason,
      })
    },
  ],
  [
    /host key verification failed|no .* host key is known/i,
    (place, said) =>
      new MirrorError(
        'UPSTREAM_TLS',
        `the ssh host key of ${place.host} is not known: ${said}. Put it into the file that hosts.${place.host}.knownHostsFile names`,
        place,
      ),
  ],
  [
    /certificate|self.signed|unknown ca/i,
    (place, said) =>
      new MirrorError(
        'UPSTREAM_TLS',
        `The certificate of ${place.host} is not trusted: ${said} (${place.upstreamUrl}). If a private authority issued it, name that authority in caFile of the origin, of the host or of upstream`,
        place,
      ),
  ],
  [
    /permission denied|could not read (?:user|pass)|authentication failed|error: 40[13]|access denied/i,
    (place, said) =>
      status(place, 401, `${said}; set or check the credentials in hosts.${place.host} of the configuration`),
  ],
  [/not found|does not exist|does not appear to be a git/i, (place, said) => status(place, 404, said)],
  [/error: (5\d\d)/i, (place, said) => status(place, Number(/error: (5\d\d)/i.exec(said)?.[1] ?? 502), said)],
  [
    /could not resolve|connection|timed out|hung up|early eof|rpc failed|unreachable|too slow|ssl|tls|disconnect/i,
    (place, said) => new MirrorError('UPSTREAM_UNREACHABLE', `Cannot read ${place.upstreamUrl}: ${said}`, place),
  ],
]

/** Turns whatever a fetch threw into an error of ours; `refusal` is what our proxy refused, which says it best. */
export function gitError(error: unknown, url: URL, refusal: MirrorError | undefined): unknown {
  if (isMirrorError(error) || !(error instanceof GitFailed)) return error
  if (refusal !== undefined) return refusal
  const place = placeOf(url)
  const said = firstComplaint(error.stderr)
  const plain = withoutNames(error.stderr)
  const explain = MEANINGS.find(([pattern]) => pattern.test(plain))?.[1]
  if (explain !== undefined) return explain(place, said)
  const message = `the repository ${place.upstreamUrl} cannot be fetched: ${said}`
  return new MirrorError('UPSTREAM_INVALID', message, { ...place, reason: said }, error)
}

function status(place: { host: string; upstreamUrl: string }, upstreamStatus: number, said: string): MirrorError {
  const message = `the repository ${place.upstreamUrl} cannot be fetched: ${said}`
  return new MirrorError('UPSTREAM_STATUS', message, { ...place, upstreamStatus })
}

/** What others chose how to call: a repository may be named `certificate-not-found`. */
function withoutNames(stderr: string): string {
  return stderr
    .replaceAll(URLS, '')
    .replaceAll(/'[^']*'/g, '')
    .replaceAll(/\brefs\/\S+/g, '')
}

/** The line that says most, in plain characters, without the URLs: they may hold anything. */
function firstComplaint(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim())
  const line =
    lines.find((text) => /^(?:fatal|error|remote|ssh|.*denied)/i.test(text)) ?? lines.find((text) => text !== '')
  return (line ?? 'git gave no reason')
    .replaceAll(URLS, '(URL)')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)
}
