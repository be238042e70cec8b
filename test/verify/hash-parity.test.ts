import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PackageHasher } from '../../src/verify/h1-worker.ts'
import { CURRENT_PLATFORM, createWorkspace, terraformAvailable, type Workspace } from '../e2e/terraform-cli.ts'
import { makeManyFiles, makeOddZips, ODD_TYPE, type OddZip } from './odd-zips.ts'
import { hasVectors, readVector } from './vectors.ts'
import { type Folder, openFolder } from './zip-fixture.ts'

const HOST = 'registry.example.test'
const REAL = ['nodir', 'withdir', 'emptydir', 'order']

interface PackedProvider extends OddZip {
  /** The type of the provider that it is a package of. */
  readonly type: string
}

const odd = (await makeOddZips()).map((zip): PackedProvider => ({ ...zip, type: ODD_TYPE }))
const real = (hasVectors ? REAL : []).map((type): PackedProvider => {
  const path = `archives/provider-zip/terraform-provider-${type}_1.0.0_linux_amd64.zip`
  return { name: `the contents of ${path}`, type, bytes: readVector(path), client: 'unpacks' }
})
const many: PackedProvider = { ...makeManyFiles(), type: ODD_TYPE }
const quick = [...odd, ...real]
// The client takes most of a minute for it: in `npm run test:large`.
const cases = process.env.HEAVY === undefined ? quick : [...quick, many]

function sourceOf(each: PackedProvider): string {
  return `${HOST}/case-${cases.indexOf(each)}/${each.type}`
}

function titleOf({ client, name, noHash }: OddZip): string {
  if (client === 'refuses') return `a zip with ${name}: the client refuses it`
  return `a zip with ${name}: ${noHash === undefined ? 'we compute the h1 of the client' : 'we give no h1, and say why'}`
}

describe.skipIf(terraformAvailable() === undefined)('the h1 of the real terraform for', () => {
  const hasher = new PackageHasher()
  let folder: Folder
  let verdicts: string
  let lock: string

  /** Providers that come from the packed zips of the folder. */
  function workspaceFor(providers: readonly PackedProvider[]): Promise<Workspace> {
    return createWorkspace({
      providers: Object.fromEntries(providers.map((each, i) => [`provider-${i}`, { source: sourceOf(each) }])),
      cliConfig: `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(folder.path)}\n  }\n}\n`,
    })
  }

  function pathOf(each: PackedProvider): string {
    return join(folder.path, sourceOf(each), `terraform-provider-${each.type}_1.0.0_${CURRENT_PLATFORM}.zip`)
  }

  beforeAll(async () => {
    folder = await openFolder()
    for (const each of cases) {
      await mkdir(dirname(pathOf(each)), { recursive: true })
      await writeFile(pathOf(each), each.bytes)
    }
    // `init` goes on behind a package that it refuses; `providers lock` has a lock file only if it refuses none.
    await using all = await workspaceFor(quick)
    verdicts = (await all.run(['init'])).output
    await using locked = await workspaceFor(cases.filter(({ client }) => client === 'unpacks'))
    const run = await locked.run(['providers', 'lock', `-fs-mirror=${folder.path}`], { timeoutMs: 280_000 })
    expect(run.code, verdicts + run.output).toBe(0)
    lock = await locked.lockFile()
  }, 300_000)

  afterAll(async () => {
    await hasher[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  it.each(cases.map((each) => [titleOf(each), each] as const))(
    '%s',
    async (_, each) => {
      expect(verdicts.includes(`Error while installing ${sourceOf(each)} `), verdicts).toBe(each.client === 'refuses')
      const { hashes, reason } = await hasher.hash(pathOf(each))
      if (each.noHash !== undefined) {
        expect({ hashes, reason }).toEqual({ hashes: [], reason: expect.stringContaining(`no h1: `) })
        expect(reason).toContain(each.noHash)
      } else if (each.client === 'unpacks') {
        const block = lock.slice(lock.indexOf(`"${sourceOf(each)}"`))
        const [h1] = /h1:[^"]+/.exec(block) ?? []
        // The last one is over files only, which is what the client hashes after it unpacked them.
        expect(hashes.at(-1)).toBe(h1)
      }
    },
    // Hashing gives way to everything else on the machine.
    600_000,
  )
})
