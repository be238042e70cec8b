import type { Command } from 'commander'
import { Explanation, type Finding } from '../admin/schema/explain.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { formatAuthentication } from './authentication-text.ts'
import { wrongUse } from './command-error.ts'
import { formatItem, parseItem } from './item.ts'
import { print, printJson } from './terminal/output.ts'

const EXAMPLES = [
  'terramirror explain hashicorp/aws                    its list of versions',
  'terramirror explain hashicorp/aws 5.100.0            why it is served, or not',
  'terramirror explain terraform-aws-modules/vpc/aws 5.1.0 --json',
]

/** `terramirror explain`: why clients see what they see, with the facts behind it. Asks no origin. */
export function defineExplain(command: Command): void {
  addAdminOptions(command.argument('<item...>', 'ADDRESS [VERSION]'), EXAMPLES).action(
    (words: string[], options: AdminOptions) => explain(command, words, options),
  )
}

async function explain(command: Command, words: readonly string[], options: AdminOptions): Promise<void> {
  const { version, ...address } = parseItem(words)
  if ('platform' in address) throw wrongUse('a version is explained with all its platforms; leave the platform out')
  const client = await openAdminClient(command, options)
  const query = { address: formatItem(address), version }
  const explanation = await client.ask({ path: ['explain'], query, schema: Explanation })
  await (options.json ? printJson(explanation) : print(formatExplanation(explanation)))
}

function formatExplanation({ address, version, summary, findings }: Explanation): string {
  const width = Math.max(0, ...findings.map(({ about }) => about.length))
  const name = version === null ? address : `${address} ${version}`
  const lines = findings.flatMap((finding) => formatFinding(finding, width))
  return `${[name, summary, ...(lines.length === 0 ? [] : ['', ...lines])].join('\n')}\n`
}

/** A mark, what was looked at, and the words; below them what vouches for it. */
function formatFinding(finding: Finding, width: number): string[] {
  const { about, verdict, text, code, upstreamUrl, at, authentication } = finding
  const isAbsent = verdict === 'missing' && code === undefined
  const mark = verdict === 'ok' ? 'ok' : isAbsent ? '- ' : '! '
  const [first = '', ...more] = text.split('\n')
  const verdictText = verdict === 'ok' ? '' : `${verdict}: `
  const details = [
    ...more,
    ...(authentication === undefined ? [] : [`authenticated ${formatAuthentication(authentication)}`]),
    ...(upstreamUrl === undefined ? [] : [upstreamUrl]),
    ...(at === undefined ? [] : [`at ${at}`]),
  ]
  const margin = ' '.repeat(width + 6)
  return [
    `${mark}  ${about.padEnd(width)}  ${verdictText}${first}${code === undefined ? '' : ` (${code})`}`,
    ...details.map((line) => `${margin}${line}`),
  ]
}
