import { MirrorError, redactUrl } from '../../../errors.ts'
import type { GitSource } from '../../../protocol/module-source.ts'
import { type Environment, runGit } from './git-command.ts'

/** What a source's ref is at its repository now. */
export interface ResolvedRef {
  /** The whole name (`refs/tags/v1`, `HEAD`), or the commit's id where it is not named there. */
  readonly name: string
  /** Full id; undefined for a commit that only its short id or its history tells. */
  readonly commit: string | undefined
  /** A branch, which may name another commit later. */
  readonly moving: boolean
}

const FULL_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
const SHORT_ID = /^[0-9a-f]{4,64}$/

/** True for the whole id of a commit: nothing needs to be asked. */
export function isFullCommitId(ref: string): boolean {
  return FULL_ID.test(ref)
}

/**
 * Asks the repository what a ref is, by the order of `git rev-parse`: a tag before a branch of the same name.
 * @throws GitFailed; MirrorError `UPSTREAM_INVALID` if there is neither tag, branch nor what could be a commit
 */
export async function resolveRef(
  { url, ref }: GitSource,
  { cwd, env, signal }: { cwd: string; env: Environment; signal: AbortSignal },
): Promise<ResolvedRef> {
  if (ref !== undefined && FULL_ID.test(ref)) return { name: ref, commit: ref, moving: false }
  const names = ref === undefined ? ['HEAD'] : candidates(ref)
  const patterns = names.flatMap((name) => (name.startsWith('refs/tags/') ? [name, `${name}^{}`] : [name]))
  const output = await runGit(['ls-remote', '--quiet', '--', url.href, ...patterns], { cwd, env, signal })
  const found = parseListing(output.toString('utf8'))
  for (const name of names) {
    // Of an annotated tag the second line is the commit that it names.
    const commit = found.get(`${name}^{}`) ?? found.get(name)
    if (commit !== undefined) return { name, commit, moving: !name.startsWith('refs/tags/') }
  }
  if (ref !== undefined && SHORT_ID.test(ref)) return { name: ref, commit: undefined, moving: false }
  throw unknownRef(url, ref)
}

/** The repository has no such ref. */
export function unknownRef(url: URL, ref: string | undefined): MirrorError<'UPSTREAM_INVALID'> {
  const upstreamUrl = redactUrl(url)
  const reason =
    ref === undefined ? 'it has no default branch' : `it has neither tag, branch nor commit ${JSON.stringify(ref)}`
  return new MirrorError('UPSTREAM_INVALID', `the repository ${upstreamUrl} is not what the registry says: ${reason}`, {
    host: url.host,
    upstreamUrl,
    reason,
  })
}

function candidates(ref: string): string[] {
  return ref.startsWith('refs/') ? [ref] : [`refs/${ref}`, `refs/tags/${ref}`, `refs/heads/${ref}`].filter(isKnownKind)
}

function isKnownKind(name: string): boolean {
  return name.startsWith('refs/tags/') || name.startsWith('refs/heads/')
}

function parseListing(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [commit = '', name] = line.split('\t', 2)
    if (name !== undefined && FULL_ID.test(commit)) found.set(name, commit)
  }
  return found
}
