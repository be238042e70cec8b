import { isMirrorError } from '../errors.ts'
import type { HclBlock } from '../hcl/hcl-body.ts'
import { displayHostname, parseHostname } from '../protocol/hostname.ts'
import { type ClientFile, type ClientFileFindings, entriesOf } from './client-settings.ts'
import { type Finding, findingsAbout } from './finding.ts'

const about = findingsAbout('client file')
const SERVICES = { 'providers.v1': 'providers', 'modules.v1': 'modules' } as const

/** The rules of `host` and `credentials` blocks. */
export function judgeHosts(file: ClientFile): ClientFileFindings {
  const hosts = file.body.blocks.filter(({ type }) => type === 'host')
  const judged = hosts.map((block) => judgeHost(block, file))
  return {
    findings: [
      ...judged.flatMap(({ findings }) => findings),
      ...judgeCredentials(
        file,
        judged.flatMap(({ mirrors }) => mirrors),
      ),
    ],
    mirrors: judged.flatMap(({ mirrors }) => mirrors),
  }
}

function judgeHost(block: HclBlock, { place }: ClientFile): ClientFileFindings {
  const where = place(block.line)
  const [label = ''] = block.labels
  let host: string
  try {
    host = parseHostname(label)
  } catch (error) {
    if (!isMirrorError(error)) throw error
    return {
      findings: [
        about.problem(
          `${where}: host "${label}" is no host name`,
          'Write the host of a registry, such as registry.terraform.io.',
        ),
      ],
      mirrors: [],
    }
  }
  const services = entriesOf(block.body.attributes.get('services'))
  const findings: Finding[] = []
  const mirrors: URL[] = []
  for (const [name, folder] of Object.entries(SERVICES)) {
    const text = services.get(name)
    if (text === undefined) {
      if (services.size === 0) continue
      const shown = displayHostname(parseHostname(host))
      findings.push(
        about.warning(
          `${where}: the host block of ${shown} lacks ${name}; it replaces discovery wholly, so ${folder} of that host are gone`,
          `Add "${name}" = "https://MIRROR/v1/${folder}/${host}/".`,
        ),
      )
      continue
    }
    const { finding, mirror } = judgeService(text, { name, folder, host, where })
    if (finding !== undefined) findings.push(finding)
    if (mirror !== undefined) mirrors.push(mirror)
  }
  if (services.size === 0) {
    findings.push(
      about.problem(
        `${where}: the host block names no services, so the host offers none`,
        'Print one that does: terramirror client-config --door host.',
      ),
    )
  }
  return { findings, mirrors }
}

function judgeService(
  text: string,
  { name, folder, host, where }: { name: string; folder: string; host: string; where: string },
): { finding?: Finding; mirror?: URL } {
  const url = URL.parse(text)
  const isHttp = url !== null && /^https?:$/.test(url.protocol)
  if (!isHttp)
    return { finding: about.problem(`${where}: ${name} is no URL`, `Write https://MIRROR/v1/${folder}/${host}/.`) }
  const [, base, doorHost, slash] = new RegExp(`^(.*/)v1/${folder}/([^/]+)(/?)$`).exec(url.pathname) ?? []
  if (base === undefined) return {}
  if (slash === '') {
    return {
      finding: about.problem(
        `${where}: the URL of ${name} does not end with a slash, so clients drop its last word`,
        `Write ${url.protocol}//${url.host}${url.pathname}/`,
      ),
    }
  }
  if (doorHost !== host) {
    return {
      finding: about.problem(
        `${where}: ${name} of ${host} leads to ${doorHost}`,
        `Write https://${url.host}${base}v1/${folder}/${host}/; one block for each registry.`,
      ),
    }
  }
  return { mirror: new URL(base, url) }
}

/** Clients send a token only to the very host and port of the label. */
function judgeCredentials({ body, place }: ClientFile, mirrors: readonly URL[]): Finding[] {
  return body.blocks.flatMap((block) => {
    const [label = ''] = block.labels
    if (block.type !== 'credentials' || label.includes(':')) return []
    const withPort = mirrors.find(({ hostname, port }) => hostname === label && port !== '')
    if (withPort === undefined) return []
    const text = `${place(block.line)}: the credentials of ${label} are not sent to ${withPort.host}: the label lacks the port`
    return [about.warning(text, `Write credentials "${withPort.host}".`)]
  })
}
