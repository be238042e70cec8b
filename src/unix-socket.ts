import { chmod, lstat, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { MirrorError } from './errors.ts'

const KEY = 'admin.listen.socket'
/** What `sockaddr_un` holds, less the name of the folder in which a socket is prepared. */
const MAX_BYTES = 107 - '/.tXXXXXX'.length
const GROUP_AND_OTHERS_WRITE = 0o022
/** Whoever listens answers a connection on the same machine at once. */
const CONNECT_MS = 2_000

/**
 * Listens on a Unix socket that this user alone can use (0600). It is prepared in a private folder beside its place and
 * then renamed, so that nobody can connect before its mode is right. The rest of a process that was killed is replaced.
 * Resolves to what removes the socket, to be called before the server is closed.
 * @throws MirrorError `CONFIGURATION` if a process listens there, something else is there, or others can write the folder
 */
export async function claimSocket(path: string, listen: (path: string) => Promise<void>): Promise<() => Promise<void>> {
  if (Buffer.byteLength(path) > MAX_BYTES) throw unusable(path, `its path is longer than ${MAX_BYTES} bytes`)
  try {
    await prepareFolder(path)
    await assertFree(path)
    const folder = await mkdtemp(join(dirname(path), '.t'))
    try {
      const prepared = join(folder, 's')
      await listen(prepared)
      await chmod(prepared, 0o600)
      await rename(prepared, path)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    const { ino } = await lstat(path)
    return () => removeSocket(path, ino)
  } catch (error) {
    if (error instanceof MirrorError) throw error
    throw unusable(path, (error as NodeJS.ErrnoException).code ?? String(error), error)
  }
}

/** Whoever can write the folder could put a socket of theirs there, and would be told the token. */
async function prepareFolder(path: string): Promise<void> {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { mode, uid } = await stat(folder)
  const own = process.geteuid?.()
  if (uid !== 0 && uid !== own) throw unusable(path, `its folder belongs to another user (uid ${uid})`)
  if ((mode & GROUP_AND_OTHERS_WRITE) === 0) return
  const advice = `name a folder below it, such as ${join(folder, 'terramirror', 'admin.sock')}; it is made with the right mode`
  throw unusable(path, `other users can write its folder; ${advice}`)
}

async function assertFree(path: string): Promise<void> {
  const found = await lstat(path).catch(ignoreMissing)
  if (found === undefined) return
  if (!found.isSocket()) throw unusable(path, 'something else is there; remove it or choose another path')
  if (await isAnswered(path)) throw unusable(path, 'another process listens there; stop it or choose another path')
}

/** Only a refusal shows that nobody listens: a process that is too busy to answer is there all the same. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const end = (answered: boolean): void => {
      socket.destroy()
      resolve(answered)
    }
    socket.setTimeout(CONNECT_MS, () => end(true))
    socket.once('connect', () => end(true))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'),
    )
  })
}

/** Another process may have taken the place by now. */
async function removeSocket(path: string, ino: number): Promise<void> {
  const found = await lstat(path).catch(ignoreMissing)
  if (found?.ino === ino) await rm(path, { force: true })
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}

function unusable(path: string, reason: string, cause?: unknown): MirrorError {
  return new MirrorError('CONFIGURATION', `cannot listen on the socket ${path}: ${reason}`, { key: KEY }, cause)
}
