#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { describeConfig } from './config/describe.ts'
import { loadConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { isMirrorError } from './errors.ts'
import { createLog, gatherLines, type Log } from './log.ts'
import { type RunningServer, startServer } from './server.ts'
import { startNotice } from './start-notice.ts'

/** Running downloads get this long when the process is told to stop. */
const STOP_GRACE_MS = 30_000

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const program = new Command('terramirror')
  .description('A caching pull-through mirror for Terraform and OpenTofu that verifies everything it serves.')
  .version(version)
  .exitOverride()

program
  .command('serve', { isDefault: true })
  .description('serve the mirror until it is told to stop')
  .option('--config <file>', 'configuration file; default: config.yaml here, if there is one')
  .option('--set <key=value>', 'set one key of the configuration, e.g. listen.port=9443', collect, [])
  .action(async (options: { config?: string; set: string[] }) => {
    const config = await loadConfig({
      ...(options.config === undefined ? {} : { file: options.config }),
      set: options.set,
      cwd: process.cwd(),
      env: process.env,
    })
    await serve(config)
  })

function collect(value: string, earlier: string[]): string[] {
  return [...earlier, value]
}

/** Serves until SIGTERM or SIGINT, then stops in good order. A second signal ends it at once. */
async function serve(config: Config): Promise<void> {
  const log = createLog(config.log, gatherLines(process.stderr))
  log.debug({ config: describeConfig(config) }, 'configuration')
  const stopping = Promise.withResolvers<number>()
  const server = await startServer({
    config,
    version,
    log,
    onFatal: (error) => {
      log.fatal({ err: error }, 'cannot go on')
      stopping.resolve(1)
    },
  })
  listenForSignals(log, stopping)
  process.stdout.write(startNotice(config, server))
  const exitCode = await stopping.promise
  await stop(server, log)
  process.exitCode = exitCode
}

function listenForSignals(log: Log, stopping: PromiseWithResolvers<number>): void {
  let stopped = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stopped) process.exit(0)
    stopped = true
    log.info({ signal }, 'stopping: running downloads may finish')
    stopping.resolve(0)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

async function stop(server: RunningServer, log: Log): Promise<void> {
  await server.close(STOP_GRACE_MS)
  log.info('stopped')
}

/** Wrong use is 2, a failure is 1; our own errors say all in their message. */
function report(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2
    return
  }
  process.exitCode = 1
  const text = isMirrorError(error)
    ? error.message
    : error instanceof Error
      ? (error.stack ?? error.message)
      : String(error)
  const lines = isMirrorError(error) ? text.split('\n') : [text]
  process.stderr.write(lines.map((line) => `terramirror: ${line}\n`).join(''))
}

// `terramirror … | head` closes the pipe early; that is no reason to crash.
process.stdout.on('error', () => undefined)
program.parseAsync().catch(report)
