import type { HclBlock } from '../hcl/hcl-body.ts'
import { type ClientFile, type ClientFileFindings, entriesOf, textOf, textsOf } from './client-settings.ts'
import { type Finding, findingsAbout } from './finding.ts'

const METHODS = ['direct', 'filesystem_mirror', 'network_mirror', 'dev_overrides'] as const
const about = findingsAbout('client file')

/** The rules of `provider_installation`, which clients apply without a word. */
export function judgeInstallation(file: ClientFile): ClientFileFindings {
  const blocks = file.body.blocks.filter(({ type }) => type === 'provider_installation')
  const [installation, second] = blocks
  if (installation === undefined) return { findings: [], mirrors: [] }
  const findings: Finding[] = []
  if (second !== undefined) {
    findings.push(
      about.problem(
        `${file.place(second.line)}: a second provider_installation block; clients stop at that`,
        'Make one of the two.',
      ),
    )
  }
  const methods = installation.body.blocks
  for (const { type, line } of methods) {
    if (METHODS.some((method) => method === type)) continue
    findings.push(
      about.problem(
        `${file.place(line)}: ${type} is no way to install providers`,
        `Clients know ${METHODS.join(', ')}.`,
      ),
    )
  }
  const networks = methods.filter(({ type }) => type === 'network_mirror')
  const judged = networks.map((block) => judgeUrl(block, file))
  findings.push(...judged.flatMap((each) => each.findings))
  findings.push(...judgeDevelopment(installation, file), ...judgeOrder(methods, file), ...judgeDirect(methods, file))
  return { findings, mirrors: judged.flatMap((each) => each.mirrors) }
}

function judgeUrl(block: HclBlock, { place }: ClientFile): ClientFileFindings {
  const attribute = block.body.attributes.get('url')
  const where = place(attribute?.line ?? block.line)
  const problem = (text: string, remedy: string) => ({
    findings: [about.problem(`${where}: ${text}`, remedy)],
    mirrors: [],
  })
  const url = URL.parse(textOf(attribute) ?? '')
  if (url === null) return problem('network_mirror has no url', 'Write url = "https://HOST/providers/".')
  if (url.protocol !== 'https:') {
    return problem(
      `clients refuse a network mirror at ${url.protocol}//`,
      'Write an https URL, of the mirror or of its TLS front.',
    )
  }
  if (!url.pathname.endsWith('/')) {
    const last = url.pathname.split('/').at(-1)
    return problem(
      `the url does not end with a slash, so clients drop "${last}" and ask elsewhere`,
      `Write ${url.protocol}//${url.host}${url.pathname}/`,
    )
  }
  if (!url.pathname.endsWith('/providers/')) {
    return problem(
      `the url ends with ${url.pathname}, and the network mirror is below providers/`,
      `Write ${url.protocol}//${url.host}${url.pathname}providers/`,
    )
  }
  const base = new URL('../', url)
  const query = url.search === '' ? [] : [about.warning(`${where}: clients drop the query of the url`, 'Take it out.')]
  base.search = ''
  return { findings: query, mirrors: [base] }
}

/** An object, not a block: see `modernise` in `client-file.ts`. */
function judgeDevelopment({ body }: HclBlock, { place }: ClientFile): Finding[] {
  const overrides = body.attributes.get('dev_overrides')
  if (overrides === undefined) return []
  const where = place(overrides.nameLine)
  if (body.blocks.some(({ line }) => line < overrides.nameLine)) {
    const text = `${where}: dev_overrides must stand first; clients stop at that`
    return [about.problem(text, 'Move it to the top of provider_installation.')]
  }
  const names = [...entriesOf(overrides).keys()].join(', ') || 'providers'
  const text = `${where}: dev_overrides takes ${names} from a folder, without version, hash or mirror`
  return [about.warning(text, 'Take it out where you do not develop that provider.')]
}

/** Clients merge the versions of all sources, and take a package from the first that has it. */
function judgeOrder(methods: readonly HclBlock[], { place }: ClientFile): Finding[] {
  const network = methods.findIndex(({ type }) => type === 'network_mirror')
  if (network < 0) return []
  return methods.flatMap((block, index) => {
    if (block.type !== 'filesystem_mirror' || isLimited(block)) return []
    const order =
      index < network ? 'comes first, so what lies there hides what the mirror has' : 'is asked beside the mirror'
    const text = `${place(block.line)}: filesystem_mirror ${order}; versions of both are mixed`
    return [
      about.warning(text, 'Give it an include list, and the network_mirror the same as exclude list; or take it out.'),
    ]
  })
}

function isLimited({ body }: HclBlock): boolean {
  return body.attributes.has('include') || body.attributes.has('exclude')
}

function judgeDirect(methods: readonly HclBlock[], file: ClientFile): Finding[] {
  const network = methods.find(({ type }) => type === 'network_mirror')
  const direct = methods.find(({ type }) => type === 'direct')
  if (network === undefined) return []
  const { place } = file
  const included = textsOf(network.body.attributes.get('include'))
  if (direct === undefined) {
    if (included.length === 0) return []
    const text = `${place(network.line)}: network_mirror is limited to ${included.join(', ')}, and without direct every other provider is nowhere`
    return [about.warning(text, 'Add a direct block that excludes the same, or take include out.')]
  }
  const left = servedOrigins(file).filter(
    (host) =>
      !isExcluded(
        host,
        included,
        textsOf(direct.body.attributes.get('exclude')),
        textsOf(direct.body.attributes.get('include')),
      ),
  )
  if (left.length === 0) return []
  const kept = textsOf(direct.body.attributes.get('exclude'))
  const list = [...kept, ...left.map((host) => `${host}/*/*`)].map((pattern) => `"${pattern}"`).join(', ')
  const text = `${place(direct.line)}: direct does not exclude ${left.join(', ')}, which the mirror serves: clients ask the origin too, and fail without a way to it`
  return [about.warning(text, `Write direct { exclude = [${list}] }.`)]
}

/** Hosts with a port cannot be asked of a network mirror; patterns cannot be written. */
function servedOrigins({ context: { config } }: ClientFile): string[] {
  return Object.keys(config.origins).filter((host) => !host.startsWith('*.') && !host.includes(':'))
}

function isExcluded(
  host: string,
  included: readonly string[],
  excluded: readonly string[],
  only: readonly string[],
): boolean {
  const isOf = (pattern: string) => hostOf(pattern) === host
  if (only.length > 0 && !only.some(isOf)) return true
  // A network mirror that takes some only: what it takes must be excluded, by the same words.
  const wanted = included.filter(isOf)
  if (included.length > 0)
    return wanted.every((pattern) =>
      excluded.some((each) => normal(each) === normal(pattern) || normal(each) === `${host}/*/*`),
    )
  return excluded.some((pattern) => normal(pattern) === `${host}/*/*` || normal(pattern) === '*/*/*')
}

/** A pattern without a host means the public registry, as in source addresses. */
function normal(pattern: string): string {
  return pattern.split('/').length === 2 ? `registry.terraform.io/${pattern}` : pattern
}

function hostOf(pattern: string): string {
  return normal(pattern).split('/')[0]?.toLowerCase() ?? ''
}
