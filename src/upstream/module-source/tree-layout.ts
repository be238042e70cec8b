import { MirrorError } from '../../errors.ts'
import type { ModuleLimits } from './module-tree.ts'

/** A file or link as a source has it; `content` says where its bytes are. */
export type SourceEntry<Content> =
  | {
      readonly kind: 'file'
      readonly path: string
      readonly executable: boolean
      readonly size: number
      readonly content: Content
    }
  | {
      readonly kind: 'link'
      readonly path: string
      /** As written: relative to the folder of the link, or to the root for a hard link of a tar. */
      readonly target: string
      readonly from: 'folder' | 'root'
    }

/** A file of the layout. */
export interface LaidOutFile<Content> {
  readonly executable: boolean
  readonly size: number
  readonly content: Content
}

/** Files by path, sorted by its UTF-16 code units, and what was left out. */
export interface TreeLayout<Content> {
  readonly files: ReadonlyMap<string, LaidOutFile<Content>>
  readonly notes: readonly string[]
}

type Folder<C> = Map<string, Node<C>>
type Node<C> =
  | { readonly kind: 'folder'; readonly children: Folder<C> }
  | { readonly kind: 'file'; readonly file: LaidOutFile<C> }
  | { readonly kind: 'link'; readonly target: readonly string[] }

const MAX_LINK_HOPS = 40
/** No path of a real module comes near; links make longer ones than any archive or repository can write. */
const MAX_DEPTH = 256
/** Names looked at to follow all links: a real module needs some for each link. All else waits meanwhile. */
const MAX_LINK_STEPS = 2_000_000
const MAX_NOTES = 20

/**
 * Makes plain files of what a source has: `.git` is left out, links inside become copies of what they lead to (clients
 * lose links when they unpack: client-contract E14), links that lead nowhere or in a circle are left out and noted.
 * With `singleFolder`, the one folder at the top is taken off (`//*`).
 * @throws MirrorError `MODULE_INVALID` for paths and links that leave the tree, no files at all, too many or too much
 */
export function layOutTree<Content>(
  entries: Iterable<SourceEntry<Content>>,
  { limits, singleFolder }: { limits: ModuleLimits; singleFolder: boolean },
): TreeLayout<Content> {
  const root: Folder<Content> = new Map()
  let count = 0
  for (const entry of entries) {
    if (++count > limits.files) throw tooManyFiles(limits)
    insert(root, entry)
  }
  const flattening = new Flattening(root, limits)
  flattening.add(singleFolder ? onlyFolder(root) : root, [])
  if (flattening.files.size === 0) throw invalidModule('it holds no files')
  // The same on every machine, and fast enough for tens of thousands of names.
  const sorted = [...flattening.files].sort(([a], [b]) => (a < b ? -1 : 1))
  return { files: new Map(sorted), notes: flattening.notes }
}

/** Refuses a module for what it holds. */
export function invalidModule(reason: string, cause?: unknown): MirrorError<'MODULE_INVALID'> {
  return new MirrorError('MODULE_INVALID', `the module's files are refused: ${reason}`, { reason }, cause)
}

function insert<C>(root: Folder<C>, entry: SourceEntry<C>): void {
  const names = splitPath(entry.path)
  const name = names.pop()
  if (name === undefined || name === '.git' || names.includes('.git')) return
  let folder = root
  for (const parent of names) folder = folderAt(folder, parent, entry.path)
  if (folder.has(name)) throw invalidModule(`it has ${quote(entry.path)} twice`)
  folder.set(
    name,
    entry.kind === 'file'
      ? { kind: 'file', file: { executable: entry.executable, size: entry.size, content: entry.content } }
      : { kind: 'link', target: linkTarget(entry.from === 'root' ? [] : names, entry) },
  )
}

function folderAt<C>(parent: Folder<C>, name: string, path: string): Folder<C> {
  const found = parent.get(name)
  if (found === undefined) {
    const children: Folder<C> = new Map()
    parent.set(name, { kind: 'folder', children })
    return children
  }
  // A file below a link would be written through it.
  if (found.kind !== 'folder') throw invalidModule(`${quote(path)} lies below something that is no folder`)
  return found.children
}

function splitPath(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  const odd = path.startsWith('/') || /^[a-z]:/i.test(path) || /[\p{Cc}\\]/u.test(path) || path.length > 4_096
  if (odd || names.includes('..')) throw invalidModule(`${quote(path)} is no path inside it`)
  return names
}

/** From the root; the link's own folder may be named by it in any way that stays inside. */
function linkTarget(folder: readonly string[], { path, target }: { path: string; target: string }): string[] {
  const names = [...folder]
  const odd = target === '' || target.startsWith('/') || /[\p{Cc}\\]/u.test(target) || target.length > 4_096
  for (const name of odd ? ['..', ...names.map(() => '..')] : target.split('/')) {
    if (name === '' || name === '.') continue
    if (name !== '..') names.push(name)
    else if (names.pop() === undefined) throw invalidModule(`the link ${quote(path)} leads out of it`)
  }
  return names
}

function onlyFolder<C>(root: Folder<C>): Folder<C> {
  const [first, ...others] = root.values()
  if (first?.kind === 'folder' && others.length === 0) return first.children
  throw invalidModule(
    `its location ends in //*, which asks for one folder at the top, but it has ${root.size} entries there`,
  )
}

class Flattening<C> {
  readonly files = new Map<string, LaidOutFile<C>>()
  readonly notes: string[] = []
  readonly #root: Folder<C>
  readonly #limits: ModuleLimits
  /** The folders that we are in: a link to one of them has no end. */
  readonly #within = new Set<Folder<C>>()
  #bytes = 0
  #visited = 0
  #linkSteps = 0

  constructor(root: Folder<C>, limits: ModuleLimits) {
    this.#root = root
    this.#limits = limits
  }

  add(folder: Folder<C>, path: readonly string[]): void {
    this.#within.add(folder)
    for (const [name, node] of folder) this.#addNode(node, [...path, name])
    this.#within.delete(folder)
  }

  #addNode(node: Node<C>, path: readonly string[]): void {
    // Links to folders of links multiply without a single file.
    if (++this.#visited > 2 * this.#limits.files) throw tooManyFiles(this.#limits)
    if (path.length > MAX_DEPTH) throw invalidModule('its folders, links followed, lie too deep in each other')
    const real = node.kind === 'link' ? this.#follow(node.target) : node
    if (real === undefined) {
      this.#note(`left out ${quote(path.join('/'))}: the link leads nowhere`)
    } else if (real.kind === 'file') {
      this.#addFile(real.file, path)
    } else if (this.#within.has(real.children)) {
      this.#note(`left out ${quote(path.join('/'))}: the link leads back to a folder that it is in`)
    } else {
      this.add(real.children, path)
    }
  }

  #addFile(file: LaidOutFile<C>, path: readonly string[]): void {
    this.#bytes += file.size
    if (this.#bytes > this.#limits.unpackedBytes) {
      throw invalidModule(`its files have more than ${this.#limits.unpackedBytes} bytes`)
    }
    this.files.set(path.join('/'), file)
    if (this.files.size > this.#limits.files) throw tooManyFiles(this.#limits)
  }

  #follow(target: readonly string[]): Exclude<Node<C>, { kind: 'link' }> | undefined {
    let names = [...target]
    let folder = this.#root
    for (let hops = 0; ; ) {
      this.#countLinkSteps(1)
      const name = names.shift()
      if (name === undefined) return { kind: 'folder', children: folder }
      const node = folder.get(name)
      if (node?.kind === 'link') {
        if (++hops > MAX_LINK_HOPS) return undefined
        names = [...node.target, ...names]
        this.#countLinkSteps(names.length)
        folder = this.#root
      } else if (node?.kind === 'file') {
        return names.length === 0 ? node : undefined
      } else if (node === undefined) {
        return undefined
      } else {
        folder = node.children
      }
    }
  }

  #countLinkSteps(count: number): void {
    this.#linkSteps += count
    if (this.#linkSteps > MAX_LINK_STEPS) throw invalidModule('its links lead through too many others')
  }

  #note(text: string): void {
    if (this.notes.length < MAX_NOTES) this.notes.push(text)
  }
}

function tooManyFiles({ files }: ModuleLimits): MirrorError<'MODULE_INVALID'> {
  return invalidModule(`it has more than ${files} files`)
}

function quote(path: string): string {
  return JSON.stringify(path.slice(0, 120))
}
