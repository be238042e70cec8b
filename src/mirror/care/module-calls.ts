import { posix } from 'node:path'
import { z } from 'zod'
import { redactUrl } from '../../errors.ts'
import { formatModuleSource, parseModuleSource } from '../../protocol/module-source.ts'

/** Something that is called, with its constraint as written; null where there is none. */
export interface Called {
  /** With the host: a module as `registry.terraform.io/a/b/c//sub`, a provider as `registry.terraform.io/hashicorp/aws`. */
  readonly source: string
  readonly version: string | null
}

/** What a module's files call. All lists are sorted, and without doubles. */
export interface ModuleCalls {
  readonly modules: readonly Called[]
  /** Sources that no registry serves, without query and credentials. */
  readonly otherSources: readonly string[]
  readonly providers: readonly Called[]
}

const called = z.object({ source: z.string(), version: z.string().nullable() })

const folderCalls = z.object({
  modules: z.array(called),
  otherSources: z.array(z.string()),
  providers: z.array(called),
  /** Folders of the same archive that it calls. */
  local: z.array(z.string()),
})

/** What the files of one folder call by themselves. */
export type FolderCalls = z.infer<typeof folderCalls>

/** By folder of an archive; the root is empty. Null: the archive is none that could be read. */
export const CallsRecord = z.object({ format: z.literal(1), folders: z.record(z.string(), folderCalls).nullable() })
export type CallsRecord = z.infer<typeof CallsRecord>

/** A call or requirement as the configuration has it. */
export interface Written {
  readonly source: string
  readonly version: string | undefined
}

/** Sorts what one folder calls by who serves it. */
export function sortCalls(folder: string, modules: readonly Written[], providers: readonly Written[]): FolderCalls {
  const calls: FolderCalls = { modules: [], otherSources: [], providers: providers.map(toCalled), local: [] }
  for (const { source, version } of modules) {
    const parsed = parseSource(source)
    if (parsed?.kind === 'registry') calls.modules.push(toCalled({ source: formatModuleSource(parsed), version }))
    else if (parsed?.kind !== 'local') calls.otherSources.push(showSource(source))
    else {
      const path = posix.join(folder, parsed.path).replace(/\/$/, '')
      // Out of the archive there is nothing of the module.
      if (path !== '..' && !path.startsWith('../')) calls.local.push(path === '.' ? '' : path)
    }
  }
  return calls
}

/**
 * What a client fetches that calls the folder `entry`: its calls, and those of the folders that it leads to. Undefined if
 * there is no such folder.
 */
export function callsOf(folders: Readonly<Record<string, FolderCalls>>, entry: string): ModuleCalls | undefined {
  if (!Object.hasOwn(folders, entry)) return undefined
  const reached = new Map<string, FolderCalls>()
  const follow = (folder: string): void => {
    const calls = Object.hasOwn(folders, folder) ? folders[folder] : undefined
    if (calls !== undefined) reached.set(folder, calls)
  }
  follow(entry)
  // What is added meanwhile is visited too.
  for (const { local } of reached.values()) for (const next of local) if (!reached.has(next)) follow(next)
  const all = [...reached.values()]
  return tidy({
    modules: all.flatMap(({ modules }) => modules),
    otherSources: all.flatMap(({ otherSources }) => otherSources),
    providers: joinConstraints(all.flatMap(({ providers }) => providers)),
  })
}

/** Everything that several entries call, each by itself. */
export function uniteCalls(entries: readonly ModuleCalls[]): ModuleCalls {
  return tidy({
    modules: entries.flatMap(({ modules }) => modules),
    otherSources: entries.flatMap(({ otherSources }) => otherSources),
    providers: entries.flatMap(({ providers }) => providers),
  })
}

/** All folders of one configuration use one version of a provider, which meets what each of them asks for. */
function joinConstraints(providers: readonly Called[]): Called[] {
  return [...Map.groupBy(providers, ({ source }) => source)].map(([source, alike]) => {
    const texts = new Set(alike.map(({ version }) => version).filter((version) => version !== null))
    return { source, version: texts.size === 0 ? null : [...texts].join(', ') }
  })
}

function tidy({ modules, otherSources, providers }: ModuleCalls): ModuleCalls {
  return { modules: distinct(modules), otherSources: [...new Set(otherSources)].sort(), providers: distinct(providers) }
}

function distinct(calls: readonly Called[]): Called[] {
  const name = ({ source, version }: Called): string => `${source} ${version ?? ''}`
  const byName = new Map(calls.map((call) => [name(call), call]))
  return [...byName].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, call]) => call)
}

function toCalled({ source, version }: Written): Called {
  return { source, version: version ?? null }
}

function parseSource(text: string) {
  try {
    return parseModuleSource(text)
  } catch {
    return undefined
  }
}

/** Whatever it is, what may be secret in it is left out. */
function showSource(text: string): string {
  const [, getter = '', rest = ''] = /^((?:[a-z0-9]+::)?)(.*)$/s.exec(text.slice(0, 1_000)) ?? []
  if (URL.canParse(rest)) return getter + redactUrl(rest)
  return getter + (rest.split(/[?#]/, 1)[0] ?? '').replace(/^[^/@]*:[^/@]*@/, '')
}
