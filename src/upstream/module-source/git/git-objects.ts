import { invalidModule, type SourceEntry } from '../tree-layout.ts'
import {
  type Environment,
  ended,
  GitFailed,
  type GitProcess,
  killGroup,
  readTail,
  runGit,
  startGit,
} from './git-command.ts'

/** Where the bytes of a file are: an object of one of the fetched repositories. */
export interface GitPlace {
  readonly objects: GitObjects
  readonly id: string
}

/** A commit of another repository that a folder stands for. */
export interface Gitlink {
  readonly path: string
  readonly commit: string
}

const MAX_TARGET_BYTES = 4_096
const ENTRY = /^(\d{6}) (blob|commit) ([0-9a-f]+) +(\d+|-)\t(.+)$/s

/**
 * Reads trees and files straight from a repository's objects; no working tree is ever made, so that no filter, hook or
 * line-ending rule touches a file. Disposing ends the process behind it.
 */
export class GitObjects implements AsyncDisposable {
  readonly #gitDir: string
  readonly #env: Environment
  readonly #signal: AbortSignal
  #reader: BlobReader | undefined

  constructor(parts: { gitDir: string; env: Environment; signal: AbortSignal }) {
    this.#gitDir = parts.gitDir
    this.#env = parts.env
    this.#signal = parts.signal
  }

  /** All files and links of a commit, and the commits of others in it. @throws GitFailed; MirrorError `MODULE_INVALID` */
  async list(commit: string, maxFiles: number): Promise<{ entries: SourceEntry<GitPlace>[]; gitlinks: Gitlink[] }> {
    const parts = { cwd: this.#gitDir, env: this.#env, signal: this.#signal }
    const output = await runGit(['ls-tree', '-r', '-l', '-z', '--full-tree', commit], parts)
    const entries: SourceEntry<GitPlace>[] = []
    const gitlinks: Gitlink[] = []
    for (const line of decode(output).split('\0')) {
      const [, mode, type, id = '', size, path = ''] = ENTRY.exec(line) ?? []
      if (type === undefined) continue
      if (type === 'commit') gitlinks.push({ path, commit: id })
      else if (mode === '120000') entries.push(await this.#link(path, id, Number(size)))
      else {
        const content = { objects: this, id }
        entries.push({ kind: 'file', path, executable: mode === '100755', size: Number(size), content })
      }
      if (entries.length > maxFiles) throw invalidModule(`it has more than ${maxFiles} files`)
    }
    return { entries, gitlinks }
  }

  /** The addresses of submodules by their paths, as `.gitmodules` of a commit has them; none if it cannot be read. */
  async submoduleUrls(commit: string): Promise<Map<string, string>> {
    const parts = { cwd: this.#gitDir, env: this.#env, signal: this.#signal }
    const args = ['config', '--blob', `${commit}:.gitmodules`, '-z', '--list']
    const settings = new Map<string, { path?: string; url?: string }>()
    const output = await runGit(args, parts).catch((error: unknown) => {
      if (error instanceof GitFailed) return ''
      throw error
    })
    for (const line of output.toString('utf8').split('\0')) {
      const [, name, key, value = ''] = /^submodule\.(.*)\.(path|url)\n(.*)$/s.exec(line) ?? []
      if (name !== undefined && key !== undefined) settings.set(name, { ...settings.get(name), [key]: value })
    }
    return new Map([...settings.values()].flatMap(({ path, url }) => (path && url ? [[path, url] as const] : [])))
  }

  /** The bytes of a file. Reads wait for each other. @throws MirrorError `MODULE_INVALID`; the reason of the signal */
  async *read(id: string, size: number): AsyncGenerator<Uint8Array> {
    this.#reader ??= new BlobReader({ gitDir: this.#gitDir, env: this.#env, signal: this.#signal })
    yield* this.#reader.read(id, size)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader?.[Symbol.asyncDispose]()
  }

  async #link(path: string, id: string, size: number): Promise<SourceEntry<GitPlace>> {
    if (size > MAX_TARGET_BYTES) throw invalidModule('the target of a link is too long')
    const pieces: Uint8Array[] = []
    for await (const bytes of this.read(id, size)) pieces.push(bytes)
    return { kind: 'link', path, target: decode(Buffer.concat(pieces)), from: 'folder' }
  }
}

/** One `git cat-file --batch` for many files, one after the other. */
class BlobReader implements AsyncDisposable {
  readonly #child: GitProcess
  readonly #pieces: AsyncIterator<Buffer>
  readonly #end: Promise<unknown>
  readonly #signal: AbortSignal
  readonly #onAbort = (): void => killGroup(this.#child)
  #rest: Buffer = Buffer.alloc(0)
  #turn: Promise<unknown> = Promise.resolve()

  constructor({ gitDir, env, signal }: { gitDir: string; env: Environment; signal: AbortSignal }) {
    this.#child = startGit(['cat-file', '--batch'], { cwd: gitDir, env })
    this.#pieces = (this.#child.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    this.#end = Promise.allSettled([ended(this.#child), readTail(this.#child.stderr)])
    this.#signal = signal
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  async *read(id: string, size: number): AsyncGenerator<Uint8Array> {
    const before = this.#turn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#turn = promise
    await before
    let left = size + 1
    try {
      this.#child.stdin.write(`${id}\n`)
      await this.#header(id, size)
      while (left > 0) {
        const bytes = await this.#take(left)
        left -= bytes.length
        // The last byte is the newline that closes a file.
        const content = left > 0 ? bytes : bytes.subarray(0, -1)
        if (content.length > 0) yield content
      }
    } finally {
      // Somebody left in the middle: nothing that follows could be told apart.
      if (left > 0) killGroup(this.#child)
      resolve()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener('abort', this.#onAbort)
    killGroup(this.#child)
    await this.#end
  }

  async #header(id: string, size: number): Promise<void> {
    let line = ''
    for (;;) {
      const bytes = await this.#take(256)
      const end = bytes.indexOf(0x0a)
      line += bytes.subarray(0, end < 0 ? bytes.length : end).toString('latin1')
      if (end < 0) continue
      this.#rest = Buffer.concat([bytes.subarray(end + 1), this.#rest])
      break
    }
    if (line !== `${id} blob ${size}`) throw invalidModule('its repository lacks an object')
  }

  async #take(most: number): Promise<Buffer> {
    if (this.#rest.length === 0) {
      const { value, done } = await this.#pieces.next()
      this.#signal.throwIfAborted()
      if (done === true) throw invalidModule('its repository cannot be read to the end')
      this.#rest = value
    }
    const taken = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(taken.length)
    return taken
  }
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw invalidModule('it has a path that is not UTF-8', error)
  }
}
