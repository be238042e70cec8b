#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addClientConfig } from './cli/client-config.ts'
import { CommandError } from './cli/command-error.ts'
import { addConfigOptions, type ConfigOptions, loadConfigFor } from './cli/config-options.ts'
import { addDoctor } from './cli/doctor.ts'
import { HELP_LAYOUT } from './cli/help.ts'
import { addOperatorCommands } from './cli/operator-commands.ts'
import { printable } from './cli/terminal/printable.ts'
import { describeConfig } from './config/describe.ts'
import type { Config } from './config/schema.ts'
import { isMirrorError } from './errors.ts'
import type { Log } from './log.ts'
import type { RunningServer } from './server.ts'
import { nameSources } from './source-stack.ts'

/** A SIGINT that comes again within this time is the same key stroke by another way. */
const SAME_KEY_MS = 500
/** Running downloads get this long when the process is told to stop. */
const STOP_GRACE_MS = 30_000

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

const program = new Command('terramirror')
  .description('A caching pull-through mirror for Terraform and OpenTofu that verifies everything it serves.')
  .version(version)
  .exitOverride()
  .configureHelp(HELP_LAYOUT)

addConfigOptions(program.command('serve', { isDefault: true }))
  .description('serve the mirror until it is told to stop')
  // What is no command comes here, because it is the default.
  .argument('[nothing...]')
  .usage('[options]')
  .action(async ([unknown]: string[], options: ConfigOptions) => {
    if (unknown !== undefined) program.error(`error: ${explainUnknown(unknown)}`, { exitCode: 2 })
    await serve(await loadConfigFor(options))
  })

addConfigOptions(program.command('healthcheck'))
  .description('ask the mirror that serves this configuration here whether it is well; exit code 1 if not')
  .action(async (options: ConfigOptions) => {
    const { findHealthProblem } = await import('./health-check.ts')
    const problem = await findHealthProblem(await loadConfigFor(options))
    if (problem === undefined) return
    process.stderr.write(`terramirror: ${problem}\n`)
    process.exitCode = 1
  })

addClientConfig(program)
addDoctor(program)
await addOperatorCommands(program, process.argv.slice(2))

/** A setting without its option comes from `npm start --set …`: npm keeps options for itself. */
function explainUnknown(word: string): string {
  if (word.includes('=')) return `'${word}' belongs behind --set; with npm: npm start -- --set ${word}`
  const names = program.commands.map((command) => command.name())
  return `unknown command '${word}'; there are ${names.join(', ')}`
}

/** Serves until SIGTERM or SIGINT, then stops in good order. A second signal ends it at once. */
async function serve(config: Config): Promise<void> {
  const { createLog, gatherLines } = await import('./log.ts')
  const log = createLog(config.log, gatherLines(process.stderr))
  const stopping = Promise.withResolvers<number>()
  // Before the start: process 1 of a container is deaf to signals that it has not asked for.
  listenForSignals(log, stopping)
  log.debug({ config: describeConfig(config) }, 'configuration')
  // Loaded when it is needed: help and a wrong configuration are answered at once.
  const [{ startServer }, { startNotice }] = await Promise.all([import('./server.ts'), import('./start-notice.ts')])
  const server = await startServer({
    config,
    version,
    log,
    onFatal: (error) => {
      log.fatal({ err: error }, 'cannot go on')
      stopping.resolve(1)
    },
  })
  process.stdout.write(startNotice(config, server))
  const exitCode = await stopping.promise
  await stop(server, log)
  process.exitCode = exitCode
}

function listenForSignals(log: Log, stopping: PromiseWithResolvers<number>): void {
  let told: { readonly signal: NodeJS.Signals; readonly at: number } | undefined
  const onSignal = (signal: NodeJS.Signals): void => {
    // The same Ctrl-C once more, by npm beside the terminal.
    if (told?.signal === 'SIGINT' && signal === 'SIGINT' && performance.now() - told.at < SAME_KEY_MS) return
    if (told !== undefined) process.exit(0)
    told = { signal, at: performance.now() }
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
  process.exitCode = error instanceof CommandError ? error.exitCode : 1
  // Nobody reads what we would say.
  if (process.exitCode === 0) return
  const isOurs = isMirrorError(error) || error instanceof CommandError
  const text = isOurs
    ? error.message
    : error instanceof Error
      ? nameSources(error.stack ?? error.message)
      : String(error)
  const lines = isOurs ? printable(text).split('\n') : [text]
  process.stderr.write(lines.map((line) => `terramirror: ${line}\n`).join(''))
}

// `terramirror … | head` closes the pipe early; that is no reason to crash.
process.stdout.on('error', () => undefined)
program.parseAsync().catch(report)
