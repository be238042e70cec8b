import type { Command } from 'commander'
import prettyBytes from 'pretty-bytes'
import { type PlannedItem, WarmPlan, type WarmRequest, WarmStarted } from '../admin/schema/warm.ts'
import type { AdminClient } from './api/client.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { type ExitCode, wrongUse } from './command-error.ts'
import { printResult } from './job/result.ts'
import { printStarted } from './job/started.ts'
import { watchJob } from './job/watch.ts'
import { putPins } from './pin.ts'
import { note, print, printJson } from './terminal/output.ts'
import { type Column, Table } from './terminal/table.ts'
import { collect } from './text-files.ts'
import { readWarmRequest, type WarmWishes } from './warm-request.ts'

/** Many origins may have to be asked for sizes. */
const PLAN_LIMIT_MS = 1_200_000

const EXAMPLES = [
  "terramirror warm hashicorp/aws 'hashicorp/google@~> 6.0' hashicorp/random@3.7.2",
  'terramirror warm ./infra --platform linux_amd64 --platform darwin_arm64',
  'terramirror warm --lock-file infra/.terraform.lock.hcl --pin prod',
  'terramirror warm --module terraform-aws-modules/vpc/aws@5.1.0',
  'terramirror warm --from-file providers.txt --platform all --dry-run',
]

const NOTES = `
What to warm:
  NAMESPACE/TYPE[@VERSION], perhaps with a host before it. VERSION is what Terraform takes: 5.100.0, '~> 5.0' (in quotes,
  because > means something to a shell), '>= 5.0, < 6.0', or latest, the default.
  A word that begins with ./, ../ or / is a folder with a Terraform configuration: its .tf and .tf.json files are read,
  those of the local modules that it calls, and its lock file; files that are symbolic links are not.
  --from-file has one provider a line, or "module" and a module; # begins a comment.

Ctrl-C cancels the job; what it has brought stays. A second Ctrl-C leaves the job to itself.`

interface Options extends AdminOptions, Omit<WarmWishes, 'words'> {
  readonly detach: boolean
  readonly pin?: string
  readonly quiet: boolean
}

/** `terramirror warm`: a job that fetches what nobody has asked for yet. */
export function defineWarm(command: Command): void {
  addAdminOptions(
    command
      .argument('[what...]', "providers, e.g. hashicorp/aws or 'hashicorp/aws@~> 5.0', or ./FOLDER")
      .option('--module <source>', 'a module, e.g. terraform-aws-modules/vpc/aws@5.1.0; may be repeated', collect, [])
      .option('--lock-file <file>', 'all that a lock file names; may be repeated', collect, [])
      .option('--from-file <file>', 'a list, one a line; - is standard input; may be repeated', collect, [])
      .option('--platform <os_arch>', 'may be repeated; all: every one; default: linux_amd64', collect, [])
      .option('--no-follow-modules', 'not what modules call')
      .option('--dry-run', 'fetch nothing; only tell what would be', false)
      .option('--detach', 'print the id of the job and leave it to itself', false)
      .option('--pin <name>', 'when it is done, keep all of it from eviction as this set of pins')
      .option('-q, --quiet', 'no progress', false)
      .addHelpText('after', NOTES),
    EXAMPLES,
  ).action((words: string[], options: Options) => warm(command, words, options))
}

async function warm(command: Command, words: readonly string[], options: Options): Promise<void> {
  const { dryRun, detach, pin, quiet } = options
  if (pin !== undefined && (dryRun || detach))
    throw wrongUse('--pin needs the end of the job; leave --dry-run and --detach out')
  if (dryRun && detach) throw wrongUse('--dry-run starts no job that --detach could leave')
  const request = await readWarmRequest({ ...options, words })
  const client = await openAdminClient(command, options)
  if (dryRun) {
    process.exitCode = await printPlan(client, request, options)
    return
  }
  const job = await client.ask({ method: 'POST', path: ['warm'], body: request, schema: WarmStarted })
  if (detach) return printStarted(job, options)
  const finished = await watchJob(client, job.id, { quiet, onInterrupt: 'cancel' })
  const exitCode = await printResult(finished, options)
  process.exitCode = exitCode
  if (pin === undefined || finished.job.state !== 'done') return
  const set = await putPins(client, pin, { jobs: [job.id] })
  note(`pinned as ${set.name}: ${set.held} held, ${prettyBytes(set.bytes)}`)
}

const planColumns: readonly Column<PlannedItem>[] = [
  { title: 'OUTCOME', cell: ({ outcome }) => outcome },
  { title: 'SIZE', align: 'right', cell: ({ size }) => (size === undefined ? '?' : prettyBytes(size)) },
  { title: 'ITEM', cell: ({ item }) => item },
  { title: 'REASON', cell: ({ reason }) => reason ?? '' },
]

async function printPlan(client: AdminClient, body: WarmRequest, { json }: Options): Promise<ExitCode> {
  const plan = await client.ask({ method: 'POST', path: ['warm'], body, schema: WarmPlan, limitMs: PLAN_LIMIT_MS })
  await (json ? printJson(plan) : print(formatPlan(plan)))
  return plan.items.every(({ outcome }) => outcome === 'fetch' || outcome === 'held') ? 0 : 1
}

function formatPlan({ items, bytes, unknownSizes }: WarmPlan): string {
  const count = (wanted: PlannedItem['outcome']) => items.filter(({ outcome }) => outcome === wanted).length
  const rest = items.length - count('fetch') - count('held')
  const sizes = [bytes > 0 ? prettyBytes(bytes) : '', unknownSizes > 0 ? `${unknownSizes} of unknown size` : '']
  const size = sizes.filter(Boolean).join(' and ')
  const sum = `to fetch: ${count('fetch')}${size === '' ? '' : ` (${size})`}, held already: ${count('held')}`
  return `${new Table(planColumns).format(items)}${sum}${rest === 0 ? '' : `, cannot come: ${rest}`}\n`
}
