import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseModuleLocation } from '../../src/protocol/module-location.ts'
import { gitHttpBackend } from '../origin/git-host.ts'
import { describeVectors } from '../protocol/vectors.ts'
import { GitRepository } from '../upstream/module-source/git-source-fixture.ts'
import { canonicalVersion } from './client-rules.ts'
import { filesBelow, readText } from './data-set.ts'
import {
  createModuleSite,
  type DataModule,
  moduleDownloadJson,
  moduleVersionsJson,
  readModules,
  repositoryUrl,
  withoutV,
} from './module-site.ts'
import { startMirrorOver } from './registry-mirror.ts'
import { forEachOf, Tally } from './tally.ts'

const HOST = 'registry.opentofu.org'
const PLACE = 'v1-derived/v1/modules/'
/** Terraform's grammar of a module's address; nobody can write a source with any other. */
const ADDRESS = /^[0-9A-Za-z](?:[\w-]{0,62}[0-9A-Za-z])?\/[0-9A-Za-z](?:[\w-]{0,62}[0-9A-Za-z])?\/[0-9a-z]{1,64}$/

let repository: GitRepository
beforeAll(async () => {
  repository = await GitRepository.make()
})
afterAll(() => repository[Symbol.asyncDispose]())

describeVectors('every module of real registry data lists and resolves through the mirror', () => {
  test('the test renders answers as the generator of registry.opentofu.org does', () => {
    const modules = new Map(readModules().map((module) => [module.name, module]))
    const derived = filesBelow(PLACE).map((file) => file.slice(PLACE.length))
    expect(derived).toHaveLength(9)
    for (const path of derived) {
      const [namespace, name, system, version] = path.split('/')
      const module = modules.get(`${namespace}/${name}/${system}`)
      if (module === undefined) throw new Error(`${path} is not in the slice`)
      const tag = module.tags.find((each) => withoutV(each) === version) ?? ''
      const rendered = version === 'versions' ? moduleVersionsJson(module) : moduleDownloadJson(module, tag)
      expect(rendered, path).toBe(readText(PLACE + path))
    }
  })

  test('every tag of the data is the ref of its location', () => {
    let count = 0
    for (const module of readModules()) {
      for (const tag of module.tags) {
        const body = Buffer.from(moduleDownloadJson(module, tag))
        const endpoint = new URL(`https://${HOST}/v1/modules/${module.name}/1.0.0/download`)
        const { source } = parseModuleLocation({ status: 200, header: undefined, body, endpoint })
        expect(source).toEqual({ kind: 'git', url: new URL(repositoryUrl(module.name)), ref: tag, subfolder: '' })
        count += 1
      }
    }
    expect(count).toBe(2_647)
  })

  // Half a minute: in `npm run test:large`.
  test.skipIf(gitHttpBackend() === undefined || process.env.HEAVY === undefined)(
    'every file, counted',
    { timeout: 300_000 },
    async () => {
      const commit = await repository.commit({ 'main.tf': '# module\n' })
      const modules = readModules()
      const tagged = new Map(modules.map((module) => [module.name, sample(module)]))
      const site = createModuleSite(HOST, modules, { gitDir: join(repository.path, '.git'), commit, tagged })
      await using registry = await startMirrorOver(site, { hosts: [HOST] })
      const tally = new Tally(Object.keys(EXPECTED))

      await forEachOf(modules, 4, async (module) => {
        tally.add('module files')
        const list = await registry.mirror.ask(`/v1/modules/${HOST}/${module.name}/versions`)
        if (!ADDRESS.test(module.name)) {
          expect([list.status, list.json().code], module.name).toEqual([404, 'INVALID_ADDRESS'])
          return tally.add('of an address that no client can write: 404')
        }
        const versions = list.json().modules[0].versions.map(({ version }: { version: string }) => version)
        const wanted = new Set(module.tags.flatMap((tag) => canonicalVersion(withoutV(tag)) ?? []))
        expect(new Set(versions), module.name).toEqual(wanted)
        expect(versions, module.name).toHaveLength(wanted.size)
        tally.add('versions in the data', module.tags.length)
        tally.add('versions listed', versions.length)
        for (const tag of tagged.get(module.name)?.slice(0, 1) ?? []) {
          const version = encodeURIComponent(versionOf(tag))
          const answer = await registry.mirror.ask(`/v1/modules/${HOST}/${module.name}/${version}/download`)
          expect(answer.status, `${module.name} ${tag}: ${answer.body}`).toBe(204)
          tally.add('versions fetched from their repository')
        }
      })
      console.log(`modules of registry data through the mirror:\n${tally}`)
      expect(tally.toObject()).toEqual(EXPECTED)
    },
  )
})

const EXPECTED = {
  'module files': 24,
  'of an address that no client can write: 404': 2,
  'versions in the data': 2_642,
  'versions listed': 2_586,
  'versions fetched from their repository': 22,
}

/** All tags of one version: that of the first tag of an odd form, else of the newest. */
function sample({ tags }: DataModule): string[] {
  const chosen = tags.find((tag) => !/^v?\d+\.\d+\.\d+$/.test(tag)) ?? tags[0] ?? ''
  return tags.filter((tag) => versionOf(tag) === versionOf(chosen))
}

function versionOf(tag: string): string {
  return canonicalVersion(withoutV(tag)) ?? ''
}
