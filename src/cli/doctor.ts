import type { Command } from 'commander'
import type { Finding } from '../doctor/finding.ts'
import { wrongUse } from './command-error.ts'
import { addConfigOptions, type ConfigOptions } from './config-options.ts'
import { print, printJson } from './terminal/output.ts'
import { collect } from './text-files.ts'

const EXAMPLES = `
Examples:
  terramirror doctor
  terramirror doctor --config /etc/terramirror/config.yaml --base-url https://mirror.example.com/
  terramirror doctor --client-config ~/.terraformrc --offline
  terramirror doctor --provider registry.acme.example/acme/widget --json

Exit codes:
  0 all is well; there may be warnings   1 something is wrong   2 wrong use
`

interface Options extends ConfigOptions {
  readonly clientConfig?: string
  readonly baseUrl?: string
  readonly provider: readonly string[]
  readonly offline: boolean
  readonly json: boolean
}

/** `terramirror doctor`: looks for what goes wrong in practice, whether the mirror runs or not. Changes nothing. */
export function addDoctor(program: Command): void {
  addConfigOptions(program.command('doctor'))
    .description('look for what goes wrong in practice, and tell what to do')
    .option('--client-config <file>', 'also judge this configuration of Terraform or OpenTofu, such as ~/.terraformrc')
    .option('--base-url <url>', 'where clients reach the mirror, perhaps a front proxy; default: publicUrl')
    .option(
      '--provider <address>',
      'a provider to ask its origin for, HOST/NAMESPACE/TYPE; may be repeated',
      collect,
      [],
    )
    .option('--offline', 'ask no origin', false)
    .option('--json', 'one JSON document on standard output, for programs', false)
    .addHelpText('after', EXAMPLES)
    .action(examineAndTell)
}

async function examineAndTell(options: Options): Promise<void> {
  const { config: file, set, clientConfig, offline, json } = options
  // Loaded when it is needed: help is answered at once.
  const { examine, isProviderText } = await import('../doctor/examination.ts')
  const wrong = options.provider.find((text) => !isProviderText(text))
  if (wrong !== undefined)
    throw wrongUse('--provider: expected HOST/NAMESPACE/TYPE, such as registry.terraform.io/hashicorp/aws')
  const findings = await examine({
    ...(file === undefined ? {} : { file }),
    ...(clientConfig === undefined ? {} : { clientFile: clientConfig }),
    ...(options.baseUrl === undefined ? {} : { baseUrl: readBaseUrl(options.baseUrl) }),
    ...{ set, cwd: process.cwd(), env: process.env, isOffline: offline, providers: options.provider },
  })
  const isWell = findings.every(({ verdict }) => verdict !== 'problem')
  await (json ? printJson({ well: isWell, findings }) : print(formatFindings(findings)))
  if (!isWell) process.exitCode = 1
}

/** The message never shows the value: it may hold a password. */
function readBaseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw wrongUse('--base-url: expected an absolute URL such as https://mirror.example.com/')
  }
  if (url.username !== '' || url.password !== '') throw wrongUse('--base-url: leave user and password out')
  if (url.search !== '' || url.hash !== '')
    throw wrongUse('--base-url: it has a query or a fragment, which clients drop')
  if (/\/providers\/?$/.test(url.pathname)) {
    throw wrongUse('--base-url: it ends with providers/; give the address of the mirror itself')
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

const MARKS: Readonly<Record<Finding['verdict'], string>> = {
  ok: 'ok     ',
  skipped: '-      ',
  warning: 'warning',
  problem: 'WRONG  ',
}

/** One line for each finding, and a last one with the sum. */
function formatFindings(findings: readonly Finding[]): string {
  const lines = findings.map(({ check, verdict, text, remedy }) => {
    const oneLine = `${text}${remedy === undefined ? '' : `. ${remedy}`}`.replaceAll(/\s*\n\s*/g, ' ')
    return `${MARKS[verdict]}  ${check}: ${oneLine}\n`
  })
  const count = (verdict: Finding['verdict']) => findings.filter((each) => each.verdict === verdict).length
  const sum =
    count('problem') === 0 && count('warning') === 0
      ? 'all is well'
      : `${count('problem')} wrong, ${count('warning')} ${count('warning') === 1 ? 'warning' : 'warnings'}`
  return `${lines.join('')}${sum}\n`
}
