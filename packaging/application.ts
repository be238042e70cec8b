import { globSync } from 'node:fs'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join, resolve, sep } from 'node:path'
import { PROJECT, UNBUNDLED, writeBundle } from './bundle.ts'
import { collectLicences } from './licences.ts'
import { createSbom, type SbomSubject } from './sbom.ts'

/** Of a package beside the bundle: what Node.js loads, and what its licence wants. */
const NEEDED = /^(package\.json|index\.js|dist\/node\/openpgp\.mjs|(licen[cs]e|readme)[^/]*)$/i

/** What `writeApplication` wrote. */
export interface Application {
  readonly manifest: SbomSubject
  /** Folders of the packages in it, bundled or not, from the project's folder; sorted. */
  readonly packages: readonly string[]
}

/**
 * Writes all that a Node.js needs to run the program, and what must go with it, into `folder`, which is emptied first:
 *
 *     dist/          the bundle; dist/terramirror.js is what to start
 *     node_modules/  the packages that are not bundled
 *     docs/          the pages that the mirror hands out to people, and what they point to beside it
 *     package.json   name and version
 *     LICENSE, THIRD-PARTY-LICENSES.txt
 *     sbom.cdx.json  the packages in it (CycloneDX)
 */
export async function writeApplication(folder: string): Promise<Application> {
  const target = resolve(folder)
  await rm(target, { recursive: true, force: true })
  await mkdir(target, { recursive: true })
  const manifest = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8')) as SbomSubject
  const { name, version, license } = manifest
  await writeFile(
    join(target, 'package.json'),
    `${JSON.stringify({ name, version, license, type: 'module' }, null, 2)}\n`,
  )
  const bundle = await writeBundle(join(target, 'dist'))
  for (const unbundled of UNBUNDLED) await copyPackage(unbundled, join(target, 'node_modules', unbundled))
  const packages = [...bundle.packages, ...UNBUNDLED.map((each) => `node_modules/${each}`)].sort()
  const gpl = await readFile(join(PROJECT, 'packaging/files/GPL-3.0.txt'), 'utf8')
  await cp(join(PROJECT, 'LICENSE'), join(target, 'LICENSE'))
  await copyPages(target)
  await writeFile(join(target, 'THIRD-PARTY-LICENSES.txt'), `${collectLicences(packages)}${gpl}`)
  await writeFile(join(target, 'sbom.cdx.json'), createSbom(manifest, packages))
  return { manifest, packages }
}

/** The documentation, and what it points to, so that no link of it is dead. */
const PAGES = [
  ...['docs/*.md', 'docs/adr/*.md', 'README.md', 'CONTRIBUTING.md', 'config.example.yaml', 'packaging/files/README.md'],
  ...['deploy/**/*.yaml', 'deploy/**/*.service', 'docs/images/*'],
]

async function copyPages(target: string): Promise<void> {
  for (const page of globSync(PAGES, { cwd: PROJECT }).sort()) await cp(join(PROJECT, page), join(target, page))
}

async function copyPackage(name: string, target: string): Promise<void> {
  const source = join(PROJECT, 'node_modules', name)
  await cp(source, target, {
    recursive: true,
    filter: (path) => {
      const inside = path
        .slice(source.length + 1)
        .split(sep)
        .join('/')
      return ['', 'dist', 'dist/node'].includes(inside) || NEEDED.test(inside)
    },
  })
}

if (import.meta.main) {
  const [folder] = process.argv.slice(2)
  if (folder === undefined) throw new Error(`usage: node packaging/${basename(import.meta.filename)} FOLDER`)
  await writeApplication(folder)
}
