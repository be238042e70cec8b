import { type Command, InvalidArgumentError } from 'commander'
import { Job } from '../admin/schema/jobs.ts'
import { parseSize } from '../config/units.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { printResult } from './job/result.ts'
import { printStarted } from './job/started.ts'
import { watchJob } from './job/watch.ts'

const EXAMPLES = [
  'terramirror verify                                   everything that is held',
  'terramirror verify registry.terraform.io/hashicorp/  what begins so',
  'terramirror verify --no-repair --rate 20MB           look only, at 20 MB a second',
  'terramirror verify --detach',
]

interface Options extends AdminOptions {
  readonly repair: boolean
  readonly rate?: number
  readonly detach: boolean
  readonly quiet: boolean
}

/** `terramirror verify`: a job that hashes what is held again. */
export function defineVerify(command: Command): void {
  addAdminOptions(
    command
      .argument('[prefix]', 'only items whose name begins so, e.g. registry.terraform.io/hashicorp/aws', '')
      .option('--no-repair', 'do not fetch damaged things again, nor remove what belongs to nothing')
      .option('--rate <size>', 'at most so much a second, e.g. 50MB; default: as configured', parseRate)
      .option('--detach', 'print the id of the job and leave it to itself', false)
      .option('-q, --quiet', 'no progress', false),
    EXAMPLES,
  ).action((prefix: string, options: Options) => verify(command, prefix, options))
}

async function verify(command: Command, prefix: string, options: Options): Promise<void> {
  const { repair, rate, detach, quiet } = options
  const client = await openAdminClient(command, options)
  const body = { prefix, repair, ...(rate === undefined ? {} : { rate }) }
  const job = await client.ask({ method: 'POST', path: ['verify'], body, schema: Job })
  if (detach) return printStarted(job, options)
  process.exitCode = await printResult(await watchJob(client, job.id, { quiet, onInterrupt: 'cancel' }), options)
}

function parseRate(text: string): number {
  const rate = parseSize(text)
  if (rate !== undefined && rate > 0) return rate
  throw new InvalidArgumentError('Expected a size such as 20MB or 500kB.')
}
