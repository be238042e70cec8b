import { randomBytes } from 'node:crypto'
import { chmod, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { MirrorError } from '../errors.ts'

const TEMPORARY = '.tmp'

/** Who may read a file: its owner alone, or everyone who gets to it. */
export type FileMode = 0o600 | 0o644

/** A folder that only its owner enters, and whose files change whole or not at all. One process uses it. */
export class PrivateFolder {
  readonly path: string
  readonly #guard: Guard

  /** `content` says what is kept there, for messages. */
  constructor(path: string, content = 'the TLS keys are') {
    this.path = path
    this.#guard = createGuard(content)
  }

  /** Makes the folder if needed, and takes access and the rest of a crash away. @throws MirrorError `STORAGE_FAILED` */
  async prepare(): Promise<void> {
    await this.#guard(`prepare ${this.path}`, async () => {
      await mkdir(this.path, { recursive: true, mode: 0o700 })
      await chmod(this.path, 0o700)
      for (const name of await readdir(this.path)) {
        if (name.endsWith(TEMPORARY)) await rm(this.file(name), { force: true })
      }
    })
  }

  file(name: string): string {
    return join(this.path, name)
  }

  /** Undefined if there is no such file. @throws MirrorError `STORAGE_FAILED` */
  read(name: string): Promise<string | undefined> {
    return this.#guard(`read ${this.file(name)}`, () =>
      readFile(this.file(name), 'utf8').catch((error: unknown) => {
        if (findCode(error) === 'ENOENT') return undefined
        throw error
      }),
    )
  }

  /**
   * Replaces a file atomically and durably; its mode is right whatever the umask. A file that has the text already is
   * only given its mode.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  async write(name: string, text: string, mode: FileMode): Promise<void> {
    const isHeld = (await this.read(name)) === text
    await this.#guard(`write ${this.file(name)}`, () =>
      isHeld ? chmod(this.file(name), mode) : this.#replace(name, text, mode),
    )
  }

  async #replace(name: string, text: string, mode: FileMode): Promise<void> {
    const temporary = this.file(`${name}.${randomBytes(6).toString('hex')}${TEMPORARY}`)
    try {
      await writeDurably(temporary, text, mode)
      await rename(temporary, this.file(name))
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
    await using folder = await open(this.path)
    await folder.sync()
  }
}

async function writeDurably(path: string, text: string, mode: FileMode): Promise<void> {
  await using file = await open(path, 'wx', mode)
  await file.chmod(mode)
  await file.writeFile(text)
  await file.sync()
}

type Guard = <T>(operation: string, work: () => Promise<T>) => Promise<T>

function createGuard(content: string): Guard {
  return async (operation, work) => {
    try {
      return await work()
    } catch (error) {
      const code = findCode(error) ?? 'unknown error'
      const isFull = code === 'ENOSPC' || code === 'EDQUOT'
      const message = `cannot ${operation} (${code}); ${content} kept there`
      throw new MirrorError(isFull ? 'STORAGE_FULL' : 'STORAGE_FAILED', message, { operation }, error)
    }
  }
}

function findCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
