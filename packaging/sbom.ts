import { findLocked, type LockedPackage, nameOf, readLockFile } from './lock-file.ts'

/** What a list of components is about. */
export interface SbomSubject {
  readonly name: string
  readonly version: string
  readonly license: string
  /** Names of the packages that it asks for itself. */
  readonly dependencies: Readonly<Record<string, string>>
}

/**
 * A software bill of materials (CycloneDX 1.5) of exactly these packages, as the lock file has them. `npm sbom` lists
 * what is installed, which is more, and leaves out what a development tool needs too. It has no time and no serial
 * number, so that equal builds have equal bytes.
 */
export function createSbom(subject: SbomSubject, packages: readonly string[]): string {
  const own = `${subject.name}@${subject.version}`
  const component = { type: 'application', name: subject.name, version: subject.version }
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: { 'bom-ref': own, ...component, licenses: licensesOf(subject), purl: `pkg:npm/${own}` },
    },
    components: packages.map((folder) => describe(folder)),
    dependencies: [
      { ref: own, dependsOn: resolveAll('', subject.dependencies, packages) },
      ...packages.map((folder) => ({
        ref: refOf(folder),
        dependsOn: resolveAll(folder, findLocked(folder).dependencies ?? {}, packages),
      })),
    ],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function describe(folder: string) {
  const locked = findLocked(folder)
  const name = nameOf(folder)
  const isNode = name.startsWith('node-linux-')
  return {
    'bom-ref': refOf(folder),
    type: isNode ? 'platform' : 'library',
    name,
    version: locked.version,
    ...(isNode ? { cpe: `cpe:2.3:a:nodejs:node.js:${locked.version}:*:*:*:*:*:*:*` } : {}),
    purl: `pkg:npm/${name.replace('@', '%40')}@${locked.version}`,
    licenses: licensesOf(locked),
    hashes: [{ alg: 'SHA-512', content: sha512Of(locked) }],
  }
}

function licensesOf({ license }: { readonly license?: string }) {
  if (license === undefined) return []
  return [/^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license }]
}

function sha512Of({ integrity }: LockedPackage): string {
  const [, base64 = ''] = /^sha512-(\S+)/.exec(integrity) ?? []
  return Buffer.from(base64, 'base64').toString('hex')
}

function refOf(folder: string): string {
  return `${nameOf(folder)}@${findLocked(folder).version}`
}

/** Those that are in the list, found as Node.js finds modules: nearest `node_modules` first. */
function resolveAll(
  from: string,
  dependencies: Readonly<Record<string, string>>,
  packages: readonly string[],
): string[] {
  const locked = readLockFile()
  return Object.keys(dependencies).flatMap((name) => {
    for (let place = from; ; place = place.slice(0, Math.max(0, place.lastIndexOf('/node_modules/')))) {
      const folder = place === '' ? `node_modules/${name}` : `${place}/node_modules/${name}`
      if (locked[folder] !== undefined) return packages.includes(folder) ? [refOf(folder)] : []
      if (place === '') return []
    }
  })
}
