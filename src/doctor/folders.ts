import { constants } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ADMIN_TOKEN_FILE } from '../admin-token.ts'
import { FORMAT } from '../store/disk/data-folder.ts'
import { errnoOf } from '../store/disk/storage-error.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** A folder of the mirror: what it is called, and its key in the configuration. */
interface Folder {
  readonly name: string
  readonly key: 'dataDir' | 'stateDir'
  readonly path: string
}

/** Whether the two folders are there or can be made, and can be written by whoever runs this. */
export async function checkFolders({ dataDir, stateDir }: { dataDir: string; stateDir: string }): Promise<Finding[]> {
  const data = await checkFolder({ name: 'data folder', key: 'dataDir', path: dataDir })
  const format = data.verdict === 'ok' ? await checkFormat(dataDir) : undefined
  const state = await checkFolder({ name: 'state folder', key: 'stateDir', path: stateDir })
  const open = state.verdict === 'ok' ? await checkPrivacy(stateDir) : undefined
  return [format ?? data, open ?? state]
}

async function checkFolder({ name, key, path }: Folder): Promise<Finding> {
  const about = findingsAbout(name)
  const { found, isThere } = await nearestFolder(path)
  const facts = await stat(found)
  const user = process.geteuid?.()
  const remedy = `Change its owner to the user of the mirror, or choose another ${key}.`
  if (!facts.isDirectory())
    return about.problem(`${path}: ${found} is no folder`, `Move it away, or choose another ${key}.`)
  try {
    await access(found, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === 'EROFS') {
      return about.problem(`${path} is on a read-only file system`, `Mount it writable, or choose another ${key}.`)
    }
    const mode = `mode 0${(facts.mode & 0o7777).toString(8)}, owner ${facts.uid}:${facts.gid}`
    return about.problem(`${found} cannot be written as uid ${user} (${mode}): ${errno}`, remedy)
  }
  if (!isThere) return about.ok(`${path} is not there yet; the mirror makes it at its first start`)
  if (user === 0 && facts.uid !== 0) {
    return about.ok(
      `${path} can be written; it belongs to uid ${facts.uid}, as whom the mirror must run (this is root)`,
    )
  }
  return about.ok(`${path} can be written as uid ${user}`)
}

async function nearestFolder(path: string): Promise<{ found: string; isThere: boolean }> {
  for (let found = path; ; found = dirname(found)) {
    const errno = await stat(found).then(() => undefined, errnoOf)
    if (errno === undefined || found === dirname(found)) return { found, isThere: found === path }
    // A folder that may not be entered is the one to speak of.
    if (errno === 'EACCES') return { found: dirname(found), isThere: false }
  }
}

async function checkFormat(dataDir: string): Promise<Finding | undefined> {
  const text = await readFile(join(dataDir, 'format'), 'utf8').catch(() => undefined)
  if (text === undefined || text.trim() === String(FORMAT)) return undefined
  const isNumber = /^\d+\s*$/.test(text)
  const found = isNumber ? `format ${text.trim()}` : `a file "format" that is no number`
  const remedy = isNumber
    ? 'Use the version of the mirror that wrote it'
    : `Restore the file (its content is ${FORMAT})`
  const about = findingsAbout('data folder')
  return about.problem(
    `${dataDir} has ${found}, and this version reads format ${FORMAT}`,
    `${remedy}, or choose another dataDir.`,
  )
}

/** Keys and tokens are in it. */
async function checkPrivacy(stateDir: string): Promise<Finding | undefined> {
  const files = [ADMIN_TOKEN_FILE, 'tls/ca-key.pem', 'tls/server-key.pem'].map((name) => join(stateDir, name))
  const about = findingsAbout('state folder')
  for (const file of files) {
    const facts = await stat(file).catch(() => undefined)
    if (facts === undefined || (facts.mode & 0o077) === 0) continue
    const mode = `0${(facts.mode & 0o777).toString(8)}`
    return about.problem(
      `${file} can be read by other users (mode ${mode})`,
      `chmod 0600 ${file}, and replace it if others may have read it.`,
    )
  }
  return undefined
}
