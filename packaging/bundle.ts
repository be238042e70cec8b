import { globSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/** The project's folder. */
export const PROJECT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Packages that stay as they are beside the bundle. OpenPGP.js is under the LGPL: who gets the program must be able to
 * put another version in its place. It asks for eckey-utils (secp256k1 and brainpool curves) in a way in which no
 * bundler sees it.
 */
export const UNBUNDLED = ['openpgp', 'eckey-utils'] as const

/** What the code in the bundle reads at run time, and finds beside itself; by package. */
const ASSETS: Readonly<Record<string, string>> = {
  'node_modules/web-tree-sitter': 'web-tree-sitter.wasm',
  'node_modules/@tree-sitter-grammars/tree-sitter-hcl': 'tree-sitter-terraform.wasm',
}

/** What other programs run: nobody imports them. */
const PROGRAMS = ['src/upstream/module-source/git/ssh-connect.ts']

/** What a bundle was made from. */
export interface Bundle {
  /** Folders of the packages whose code or WebAssembly is in it, from the project's folder: `node_modules/zod`, sorted. */
  readonly packages: readonly string[]
}

/**
 * Writes the program with what it imports into `folder`, which is emptied first. Its parent must hold `package.json`,
 * for the version, and the packages that are not in it. `also`: files of more programs that share its code. See
 * docs/adr/0007-one-bundle.md.
 * @throws Error of rolldown, with the place in the sources
 */
export async function writeBundle(folder: string, { also = [] }: { also?: readonly string[] } = {}): Promise<Bundle> {
  await using build = await rolldown({
    cwd: PROJECT,
    input: Object.fromEntries(
      ['src/terramirror.ts', ...PROGRAMS, ...findThreads(), ...also].map((file) => [basename(file, '.ts'), file]),
    ),
    platform: 'node',
    external: [...UNBUNDLED],
    onLog(level, log, report) {
      // Its `eval` is for WebAssembly with JavaScript in it, which our grammar is not.
      if (log.code !== 'EVAL' || !log.message.includes('web-tree-sitter')) report(level, log)
    },
  })
  const { output } = await build.write({
    dir: resolve(folder),
    cleanDir: true,
    // All in one folder: the sources find their neighbours by `import.meta.url`.
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    sourcemap: true,
    sourcemapExcludeSources: true,
    // The same wherever the bundle is written.
    sourcemapPathTransform: (source, mapFile) => `../${relative(PROJECT, resolve(mapFile, '..', source))}`,
    // V8 holds a text with one other character in it in twice the memory.
    charset: 'ascii',
    comments: { legal: true, annotation: false, jsdoc: false },
  })
  for (const [from, name] of Object.entries(ASSETS)) {
    await writeFile(join(resolve(folder), name), await readFile(join(PROJECT, from, name)))
  }
  const modules = output.flatMap((file) => (file.type === 'chunk' ? Object.keys(file.modules) : []))
  return { packages: [...new Set([...modules.flatMap(packageOf), ...Object.keys(ASSETS)])].sort() }
}

/** The files that run as threads: nobody imports them. */
function findThreads(): string[] {
  const files = globSync('src/**/*-worker.ts', { cwd: PROJECT }).sort()
  return files.filter((file) => readFileSync(join(PROJECT, file), 'utf8').includes('parentPort'))
}

function packageOf(moduleId: string): string[] {
  const path = relative(PROJECT, moduleId).split(sep).join('/')
  const [folder] = /^(.*\/)?node_modules\/(@[^/]+\/)?[^/]+/.exec(path) ?? []
  return folder === undefined ? [] : [folder]
}

if (import.meta.main) await writeBundle('dist')
