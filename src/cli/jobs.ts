import { type Command, Option } from 'commander'
import prettyBytes from 'pretty-bytes'
import { Job, type JobItem, JobOutcome, JobPage, JobWithItems } from '../admin/schema/jobs.ts'
import { type AdminOptions, addAdminOptions, openAdminClient } from './api/options.ts'
import { followJob } from './job/follow.ts'
import { countBad, formatBytes, formatOutcomes } from './job/progress-text.ts'
import { jobExitCode, printResult } from './job/result.ts'
import { watchJob } from './job/watch.ts'
import { formatAge } from './terminal/age.ts'
import { formatFacts } from './terminal/facts.ts'
import { print, printJson, printRaw } from './terminal/output.ts'
import { printPages } from './terminal/pages.ts'
import { Table } from './terminal/table.ts'

interface ListOptions extends AdminOptions {
  readonly all: boolean
}

interface ShowOptions extends ListOptions {
  readonly outcome?: JobOutcome
}

interface WatchOptions extends AdminOptions {
  readonly quiet: boolean
}

const jobColumns = [
  { title: 'JOB', cell: ({ id }: Job) => id },
  { title: 'KIND', cell: ({ kind }: Job) => kind },
  { title: 'STATE', cell: ({ state }: Job) => state },
  { title: 'CREATED', cell: ({ createdAt }: Job) => formatAge(createdAt) },
  {
    title: 'ITEMS',
    align: 'right' as const,
    cell: ({ progress }: Job) => `${progress.done}/${progress.total}`,
  },
  { title: 'BYTES', align: 'right' as const, cell: ({ progress }: Job) => prettyBytes(progress.bytes) },
  { title: 'NOT WELL', align: 'right' as const, cell: (job: Job) => String(countBad(job)) },
]

const itemColumns = [
  { title: 'OUTCOME', cell: ({ outcome }: JobItem) => outcome ?? '' },
  {
    title: 'SIZE',
    align: 'right' as const,
    cell: ({ totalBytes, bytes }: JobItem) => prettyBytes(totalBytes ?? bytes),
  },
  { title: 'ITEM', cell: ({ item }: JobItem) => item },
  { title: 'REASON', cell: ({ reason, code }: JobItem) => [reason, code && `(${code})`].filter(Boolean).join(' ') },
]

/** `terramirror jobs`: the work that goes on by itself. */
export function defineJobs(command: Command): void {
  defineList(command.command('list', { isDefault: true }))
  defineShow(command.command('show'))
  defineWatch(command.command('watch'))
  defineCancel(command.command('cancel'))
}

function defineList(command: Command): void {
  addAdminOptions(command.description('list the jobs, the newest first').option('--all', 'all of them', false), [
    'terramirror jobs',
    'terramirror jobs list --all',
  ]).action(async (options: ListOptions) => {
    const { json, all } = options
    const client = await openAdminClient(command, options)
    const pages = client.pages({ path: ['jobs'], query: { limit: all ? 500 : 50 }, schema: JobPage })
    await printPages(pages, { json, all, table: new Table(jobColumns), empty: 'there are no jobs' })
  })
}

function defineShow(command: Command): void {
  addAdminOptions(
    command
      .description('show a job and its items')
      .argument('<id>', 'of the job')
      .addOption(
        new Option('--outcome <outcome>', 'only items that ended so; failed: all that are not well').choices(
          JobOutcome.options,
        ),
      )
      .option('--all', 'all items', false),
    ['terramirror jobs show JOB', 'terramirror jobs show JOB --outcome failed --all'],
  ).action((id: string, options: ShowOptions) => show(command, id, options))
}

async function show(command: Command, id: string, options: ShowOptions): Promise<void> {
  const { json, all, outcome } = options
  const client = await openAdminClient(command, options)
  const query = { outcome, limit: all ? 500 : 100 }
  if (json && !all) return printJson(await client.ask({ path: ['jobs', id], query, schema: JobWithItems }))
  if (!json)
    await print(`${formatJob(await client.ask({ path: ['jobs', id], query: { limit: 1 }, schema: JobWithItems }))}\n`)
  const pages = client.pages({ path: ['jobs', id], query, schema: JobWithItems })
  await printPages(pages, { json, all, table: new Table(itemColumns), empty: 'it has no such items' })
}

function formatJob(job: Job): string {
  const { id, kind, state, reason, createdAt, startedAt, finishedAt, progress } = job
  return formatFacts([
    ['job', `${id}, ${kind}, ${state}`],
    ['reason', reason],
    ['created', createdAt],
    ['started', startedAt],
    ['finished', finishedAt],
    ['progress', `${progress.done} of ${progress.total} items, ${formatBytes(progress)}`],
    ['outcomes', formatOutcomes(job)],
  ])
}

function defineWatch(command: Command): void {
  addAdminOptions(
    command
      .description('show how a job goes on, until it ends')
      .argument('<id>', 'of the job')
      .option('-q, --quiet', 'no progress', false),
    [
      'terramirror jobs watch JOB              Ctrl-C leaves it; the job goes on',
      'terramirror jobs watch JOB --json       its events, a JSON document a line',
    ],
  ).action(async (id: string, options: WatchOptions) => {
    const client = await openAdminClient(command, options)
    if (!options.json) {
      const finished = await watchJob(client, id, { quiet: options.quiet, onInterrupt: 'leave' })
      process.exitCode = await printResult(finished, options)
      return
    }
    const { signal } = new AbortController()
    for await (const { event, data } of followJob(client, id, { signal, onLost: () => undefined })) {
      await printRaw(`${JSON.stringify({ event, data })}\n`)
      if (event === 'job') process.exitCode = jobExitCode(data)
    }
  })
}

function defineCancel(command: Command): void {
  addAdminOptions(command.description('cancel a job; what it brought stays').argument('<id>', 'of the job'), [
    'terramirror jobs cancel JOB',
  ]).action(async (id: string, options: AdminOptions) => {
    const client = await openAdminClient(command, options)
    const job = await client.ask({ method: 'DELETE', path: ['jobs', id], schema: Job })
    await (options.json ? printJson(job) : print(formatJob(job)))
  })
}
