import { readFile, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { CheckContext } from './check-context.ts'
import { type Finding, findingsAbout } from './finding.ts'

const OTHERS = 0o007
const FILE_PLACEHOLDER = /(?<!\$)\$\{file:([^}]+)\}/g
/** A secret that stands in the file itself, and not behind a placeholder. */
const INLINE_SECRET = /^\s*(?:["']?(?:token|basic)["']?)\s*:\s*["']?(?!\$\{)[^\s"'#]/m

/** Whether files with secrets can be read by those only who should: everybody on the machine should not. */
export async function checkSecretFiles(
  { config, env }: CheckContext,
  file: string | undefined,
  cwd: string,
): Promise<readonly Finding[]> {
  const about = findingsAbout('secret files')
  const source = resolve(cwd, file ?? 'config.yaml')
  const text = await readFile(source, 'utf8').catch(() => '')
  const folder = dirname(source)
  const { tls } = config.listen
  const named = [...text.matchAll(FILE_PLACEHOLDER)].map(([, path = '']) => resolve(folder, path))
  const keys = [
    typeof tls === 'object' && 'keyFile' in tls ? tls.keyFile : undefined,
    ...Object.values(config.hosts).map(({ sshKeyFile }) => sshKeyFile),
  ].filter((path) => path !== undefined)
  const files = new Set([...named, ...keys, ...(INLINE_SECRET.test(text) ? [source] : [])])
  const findings: Finding[] = []
  for (const path of files) {
    const facts = await stat(path).catch(() => undefined)
    if (facts === undefined || (facts.mode & OTHERS) === 0) continue
    const mode = `0${(facts.mode & 0o777).toString(8)}`
    const text = `${path} holds a secret, and every user of this machine can read it (mode ${mode})`
    findings.push(about.warning(text, `chmod 0640 ${path}, with the mirror's user as its owner or group.`))
  }
  if (env.TERRAMIRROR_ADMIN_TOKEN !== undefined && env.TERRAMIRROR_ADMIN_TOKEN.length < 16) {
    const text = 'TERRAMIRROR_ADMIN_TOKEN is short enough to be guessed'
    findings.push(about.warning(text, 'Take 32 random characters or more, or let the mirror make a token itself.'))
  }
  return findings.length > 0 ? findings : [about.ok(describe(files.size))]
}

function describe(count: number): string {
  if (count === 0) return 'none is named'
  return `${count} named, and not everybody can read ${count === 1 ? 'it' : 'them'}`
}
