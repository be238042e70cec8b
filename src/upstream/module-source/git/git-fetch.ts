import type { GitSource } from '../../../protocol/module-source.ts'
import { type Environment, GitFailed, runGit } from './git-command.ts'
import { resolveRef, unknownRef } from './git-refs.ts'

/** Where a commit's objects are. */
export interface FetchedCommit {
  /** A bare repository. */
  readonly gitDir: string
  /** Full id. */
  readonly commit: string
  /** The ref was a branch. */
  readonly moving: boolean
}

/** What the steps of a fetch share. */
export interface FetchParts {
  /** An empty folder to make the repository in. */
  readonly gitDir: string
  readonly env: Environment
  readonly signal: AbortSignal
}

const WANTED = 'refs/terramirror/wanted'
/** All of them, as a clone would. */
const ALL_REFS = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']

/**
 * Fetches the commit that a source names into a new bare repository: alone if the server can, with all history if not.
 * @throws GitFailed; MirrorError `UPSTREAM_INVALID` if the repository does not have it; the reason of the signal
 */
export async function fetchCommit(source: GitSource, { gitDir, env, signal }: FetchParts): Promise<FetchedCommit> {
  const git = async (...args: string[]): Promise<string> =>
    (await runGit(args, { cwd: gitDir, env, signal })).toString('utf8').trim()
  await git('init', '--quiet', '--bare', '--template=', '.')
  const { name, commit, moving } = await resolveRef(source, { cwd: gitDir, env, signal })
  const fetch = (...args: string[]) => git('fetch', '--quiet', '--no-tags', '--no-write-fetch-head', ...args)
  const alone = commit !== undefined && (await fetchAlone(source, `+${name}:${WANTED}`, fetch))
  if (!alone) await fetch('--', source.url.href, ...ALL_REFS)
  // What was fetched has the last word: the ref may have moved since it was listed.
  const found = alone ? await findCommit(git, [WANTED]) : await findCommit(git, [commit, source.ref, name])
  if (found === undefined) throw unknownRef(source.url, source.ref)
  return { gitDir, commit: found, moving }
}

/** False if the server cannot give one commit alone. */
async function fetchAlone(
  { url }: GitSource,
  refspec: string,
  fetch: (...args: string[]) => Promise<string>,
): Promise<boolean> {
  try {
    await fetch('--depth=1', '--', url.href, refspec)
    return true
  } catch (error) {
    if (error instanceof GitFailed && CANNOT_ALONE.test(error.stderr)) return false
    throw error
  }
}

/** Servers without shallow clones, and those that give commits by the names of refs only. */
const CANNOT_ALONE = /shallow|unadvertised|not our ref|no such remote ref|couldn't find remote ref/i

/** The first of the names that is a commit here. */
async function findCommit(
  git: (...args: string[]) => Promise<string>,
  names: readonly (string | undefined)[],
): Promise<string | undefined> {
  for (const name of names.filter((text) => text !== undefined)) {
    try {
      return await git('rev-parse', '--quiet', '--verify', '--end-of-options', `${name}^{commit}`)
    } catch (error) {
      if (!(error instanceof GitFailed)) throw error
    }
  }
  return undefined
}
