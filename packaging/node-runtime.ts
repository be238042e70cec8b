import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PROJECT } from './bundle.ts'
import { findLocked } from './lock-file.ts'

/** What Node.js calls the processor. */
export type Architecture = 'x64' | 'arm64'

/** The package that Node.js comes in, as a folder of the project. */
export function nodePackage(architecture: Architecture): string {
  return `node_modules/node-linux-${architecture}`
}

/**
 * Writes `bin/node` and its `LICENSE` into `folder`: the version of the lock file, as npm verified it. If it is not
 * installed, because this machine has another processor, npm fetches it.
 * @throws Error of npm, or if what is installed is not what the lock file says
 */
export async function writeNodeRuntime(architecture: Architecture, folder: string): Promise<void> {
  const installed = join(PROJECT, nodePackage(architecture))
  if (process.arch === architecture && (await versionOf(installed)) !== undefined) {
    return copyRuntime(installed, architecture, folder)
  }
  const place = await mkdtemp(join(tmpdir(), 'terramirror-node-'))
  try {
    await install(architecture, place)
    await copyRuntime(join(place, nodePackage(architecture)), architecture, folder)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

async function copyRuntime(source: string, architecture: Architecture, folder: string): Promise<void> {
  const { version } = findLocked(nodePackage(architecture))
  const found = await versionOf(source)
  if (found !== version) throw new Error(`${source} has version ${found}, the lock file wants ${version}: run npm ci`)
  await mkdir(join(folder, 'bin'), { recursive: true })
  for (const file of ['bin/node', 'LICENSE']) await cp(join(source, file), join(folder, file), { dereference: true })
}

async function versionOf(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as { version: string }).version
}

/** One package alone, by the integrity that our lock file has for it. */
async function install(architecture: Architecture, place: string): Promise<void> {
  const folder = nodePackage(architecture)
  const locked = findLocked(folder)
  // Only of optional ones does npm take those for another processor.
  const optionalDependencies = { [`node-linux-${architecture}`]: locked.version }
  const manifest = { name: 'node-runtime', version: '0.0.0', optionalDependencies }
  const lockFile = { ...manifest, lockfileVersion: 3, packages: { '': manifest, [folder]: locked } }
  await writeFile(join(place, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(place, 'package-lock.json'), JSON.stringify(lockFile))
  const options = [
    '--loglevel',
    'error',
    '--ignore-scripts',
    '--no-fund',
    '--no-audit',
    '--os',
    'linux',
    '--cpu',
    architecture,
  ]
  await promisify(execFile)('npm', ['ci', ...options], { cwd: place })
}
