import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { FileFault } from '../hcl/file-fault.ts'
import type { HclBody } from '../hcl/hcl-body.ts'
import { HclParser } from '../hcl/hcl-syntax.ts'
import { errnoOf } from '../store/disk/storage-error.ts'
import type { CheckContext } from './check-context.ts'
import { judgeHosts } from './client-hosts.ts'
import { judgeInstallation } from './client-installation.ts'
import { type ClientFile, textOf } from './client-settings.ts'
import { viewMirror } from './client-view.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Whether a CLI configuration (`.terraformrc`, `.tofurc`) leads its client to this mirror, by what clients make of it silently. */
export async function checkClientFile(
  path: string,
  cwd: string,
  context: CheckContext,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const about = findingsAbout('client file')
  const file = resolve(cwd, path)
  let body: HclBody
  try {
    body = (await HclParser.load()).parse(modernise(await readFile(file, 'utf8')))
  } catch (error) {
    if (error instanceof FileFault) {
      const place = error.line === undefined ? path : `${path}:${error.line}`
      return [
        about.problem(
          `${place}: ${error.message}`,
          'Mend it; clients stop at it. client-config prints one that is right.',
        ),
      ]
    }
    const reason = errnoOf(error)
    if (reason === undefined) throw error
    return [
      about.problem(
        `${path} cannot be read: ${reason}`,
        'A client that does not find its file goes to the Internet without a word.',
      ),
    ]
  }
  const clientFile: ClientFile = { body, context, place: (line) => `${path}:${line}` }
  const [installation, hosts] = [judgeInstallation(clientFile), judgeHosts(clientFile)]
  const mirrors = [...new Map([...installation.mirrors, ...hosts.mirrors].map((url) => [url.href, url])).values()]
  const views = await Promise.all(mirrors.map((url) => viewMirror(url, `client file: ${url.host}`, context, signal)))
  const isLed = views.some(({ isOurs }) => isOurs) || mirrors.length > 0
  const unled = about.problem(
    `${path} leads to no mirror`,
    'Print a configuration that does: terramirror client-config.',
  )
  const rules = [
    ...(await judgeFileItself(file, about)),
    ...judgeCache(clientFile, await cacheFault(clientFile)),
    ...installation.findings,
    ...hosts.findings,
  ]
  const all = [
    ...rules,
    ...(isLed ? [] : [unled]),
    ...judgeTarget(clientFile, mirrors),
    ...views.flatMap(({ findings }) => findings),
  ]
  return rules.length === 0 && isLed ? [about.ok(`${path} says what clients make of it`), ...all] : all
}

/**
 * Clients read these files by the first version of HCL, in which a block may have quoted names. In ours only an object
 * may: these two are written as one, on the same lines.
 */
function modernise(text: string): string {
  return text.replace(/^([ \t]*)(dev_overrides|services)[ \t]*\{/gm, '$1$2 = {')
}

/** A client reads its file by its name, and a token in it is worth something. */
async function judgeFileItself(file: string, about: ReturnType<typeof findingsAbout>): Promise<Finding[]> {
  const { mode } = await stat(file)
  const text = await readFile(file, 'utf8')
  if ((mode & 0o077) === 0 || !/^\s*(token|"token")\s*=/m.test(text)) return []
  return [about.warning(`${file} holds a token, and other users can read it`, `chmod 0600 ${file}`)]
}

async function cacheFault({ body }: ClientFile): Promise<string | undefined> {
  const folder = textOf(body.attributes.get('plugin_cache_dir'))
  if (folder === undefined || folder.includes('$') || folder.startsWith('~')) return undefined
  const facts = await stat(folder).catch(() => undefined)
  if (facts === undefined) return `the plugin cache folder ${folder} does not exist; clients stop at that`
  return facts.isDirectory() ? undefined : `the plugin cache ${folder} is no folder; clients stop at that`
}

function judgeCache({ body, place }: ClientFile, fault: string | undefined): Finding[] {
  const attribute = body.attributes.get('plugin_cache_dir')
  if (attribute === undefined || fault === undefined) return []
  return [
    findingsAbout('client file').problem(
      `${place(attribute.nameLine)}: ${fault}`,
      'Make the folder, or take plugin_cache_dir out.',
    ),
  ]
}

/** A file that leads somewhere else than clients should go. */
function judgeTarget({ context: { baseUrl } }: ClientFile, mirrors: readonly URL[]): Finding[] {
  if (baseUrl === undefined) return []
  const others = mirrors.filter(({ href }) => href !== baseUrl.href)
  return others.map(({ href }) =>
    findingsAbout('client file').warning(
      `it leads to ${href}, and the base URL of this mirror is ${baseUrl.href}`,
      'Is that the same mirror by another way? Else mend the URL.',
    ),
  )
}
