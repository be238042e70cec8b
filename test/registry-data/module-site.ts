import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Reply, Site } from './data-origin.ts'
import { filesBelow, readText } from './data-set.ts'

/** A module of the data: its address below a host, and the tags of its repository as the file has them. */
export interface DataModule {
  /** `NAMESPACE/NAME/SYSTEM`. */
  readonly name: string
  readonly tags: readonly string[]
}

/** Every module file of the slice. */
export function readModules(): DataModule[] {
  return filesBelow('modules').map((file) => {
    const [, , namespace, name, system = ''] = file.split('/')
    const { versions }: { versions: { version: string }[] } = JSON.parse(readText(file))
    return {
      name: `${namespace}/${name}/${system.replace(/\.json$/, '')}`,
      tags: versions.map(({ version }) => version),
    }
  })
}

/** `versions` as the generator of registry.opentofu.org writes it: one leading `v` is taken off. */
export function moduleVersionsJson({ tags }: DataModule): string {
  return JSON.stringify({ modules: [{ versions: tags.map((tag) => ({ version: withoutV(tag) })) }] }, null, 2)
}

/** `download`: the tag as it is. Of two tags for one path, the later one's file stays. */
export function moduleDownloadJson({ name }: DataModule, tag: string): string {
  return JSON.stringify({ location: `git::${repositoryUrl(name)}?ref=${tag}` }, null, 2)
}

/** Where the repository of a module is. */
export function repositoryUrl(name: string): string {
  const [namespace, module, system] = name.split('/')
  return `https://github.com/${namespace}/terraform-${system}-${module}`
}

/** The version in the list for a tag. */
export function withoutV(tag: string): string {
  return tag.replace(/^v/, '')
}

/**
 * registry.opentofu.org for these modules, and github.com as a server of plain files: all repositories there are the
 * one in `gitDir`, whose commit has all the tags in `tagged`.
 */
export function createModuleSite(
  host: string,
  modules: readonly DataModule[],
  git: { readonly gitDir: string; readonly commit: string; readonly tagged: ReadonlyMap<string, readonly string[]> },
): Site {
  const base = `https://${host}/v1/modules/`
  const byName = new Map(modules.map((module) => [module.name, module]))
  const names = new Map(modules.map(({ name }) => [repositoryUrl(name), name]))
  return async (url) => {
    if (url === `https://${host}/.well-known/terraform.json`) return { body: '{"modules.v1":"/v1/modules/"}' }
    if (url.startsWith(base)) return registryAnswer(byName, url.slice(base.length))
    const [, repository = '', path = ''] = /^(https:\/\/github\.com\/[^/]+\/[^/]+)\/(.+?)(?:\?|$)/.exec(url) ?? []
    const name = names.get(repository)
    if (name === undefined) return undefined
    if (path === 'info/refs') {
      const refs = (git.tagged.get(name) ?? []).map((tag) => `${git.commit}\trefs/tags/${tag}\n`)
      return file(refs.join(''))
    }
    if (path === 'HEAD') return file('ref: refs/heads/main\n')
    if (path === 'objects/info/packs') return file('')
    return await readFile(join(git.gitDir, path)).then(file, () => undefined)
  }
}

function registryAnswer(byName: ReadonlyMap<string, DataModule>, path: string): Reply | undefined {
  const [namespace, name, system, version, action] = path.split('/').map(decodeURIComponent)
  const module = byName.get(`${namespace}/${name}/${system}`)
  if (module === undefined) return undefined
  if (version === 'versions' && action === undefined) return { body: moduleVersionsJson(module) }
  const tag = module.tags.findLast((each) => withoutV(each) === version)
  return tag === undefined || action !== 'download' ? undefined : { body: moduleDownloadJson(module, tag) }
}

function file(body: string | Uint8Array): Reply {
  return { body, headers: { 'content-type': 'application/octet-stream' } }
}
