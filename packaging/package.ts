import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { writeApplication } from './application.ts'
import { findBuildTime, sha256Of, writeArchive } from './archive.ts'
import { PROJECT } from './bundle.ts'
import { type Architecture, nodePackage, writeNodeRuntime } from './node-runtime.ts'
import { createSbom } from './sbom.ts'

const ARCHITECTURES: readonly Architecture[] = ['x64', 'arm64']

/** Files of the project that go into the package as they are. */
const COPIED: Readonly<Record<string, string>> = {
  'packaging/files/terramirror': 'terramirror',
  'packaging/files/README.md': 'README.md',
  'config.example.yaml': 'config.example.yaml',
  'deploy/systemd/terramirror.service': 'systemd/terramirror.service',
}

/** A package to write. */
export interface PackageOptions {
  readonly architecture: Architecture
  /** Where the archive goes; made if it is not there. */
  readonly folder: string
  /** Time of every file in it, in seconds. */
  readonly time: number
  /** How hard gzip tries; default 6. */
  readonly level?: number
}

/**
 * Writes `terramirror-VERSION-linux-ARCHITECTURE.tar.gz`: Node.js, the program, and what must go with it. Unpacked, it
 * runs on a machine that has neither Node.js nor npm nor a network. See docs/packaging.md. Resolves to the file.
 */
export async function writePackage({ architecture, folder, ...options }: PackageOptions): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'terramirror-package-'))
  try {
    const { manifest, packages } = await writeApplication(join(parent, 'application'))
    const name = `${manifest.name}-${manifest.version}-linux-${architecture}`
    const root = join(parent, name)
    await mkdir(root)
    await cp(join(parent, 'application'), join(root, 'lib'), { recursive: true })
    await writeNodeRuntime(architecture, join(root, 'node'))
    for (const [from, to] of Object.entries(COPIED)) await cp(join(PROJECT, from), join(root, to))
    await chmod(join(root, 'terramirror'), 0o755)
    await rm(join(root, 'lib/sbom.cdx.json'))
    await writeFile(join(root, 'sbom.cdx.json'), createSbom(manifest, [...packages, nodePackage(architecture)].sort()))
    await writeFile(join(root, 'SHA256SUMS'), await sumUp(root))
    await mkdir(folder, { recursive: true })
    const file = join(folder, `${name}.tar.gz`)
    await writeArchive(file, { parent, name, ...options })
    return file
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

/** A line for each file below, as `sha256sum --check` reads it; sorted. */
async function sumUp(root: string): Promise<string> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const lines: string[] = []
  for (const file of files.sort()) lines.push(`${await sha256Of(file)}  ${relative(root, file)}\n`)
  return lines.join('')
}

/** `npm run package [-- x64 arm64]`: into `build`, with their `SHA256SUMS`. */
async function main(wanted: readonly string[]): Promise<void> {
  if (wanted.some((name) => !(ARCHITECTURES as readonly string[]).includes(name))) {
    process.stderr.write(
      `usage: npm run package [-- ${ARCHITECTURES.join(' ')}]\nWrites build/terramirror-VERSION-linux-ARCHITECTURE.tar.gz\n`,
    )
    process.exitCode = wanted.includes('--help') ? 0 : 2
    return
  }
  const folder = join(PROJECT, 'build')
  const time = await findBuildTime(process.env)
  for (const architecture of ARCHITECTURES) {
    if (wanted.length > 0 && !wanted.includes(architecture)) continue
    const file = await writePackage({ architecture, folder, time })
    process.stdout.write(`${relative(process.cwd(), file)}\n`)
  }
  // With those that an earlier run left: what is there has its line.
  await writeFile(join(folder, 'SHA256SUMS'), await sumUpArchives(folder))
}

async function sumUpArchives(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.tar.gz')).sort()
  const lines: string[] = []
  for (const name of names) lines.push(`${await sha256Of(join(folder, name))}  ${name}\n`)
  return lines.join('')
}

if (import.meta.main) await main(process.argv.slice(2))
