import { writeFile } from 'node:fs/promises'
import { DemoFolder } from './folder.ts'
import { type DemoOptions, HELP, parseOptions } from './options.ts'
import { Screen, speaksUnicode, wantsColours } from './screen.ts'
import { BrokenPromise, tellStory } from './story.ts'
import { drawSvg } from './svg.ts'

/*
 * `npm run demo`: what Terramirror does, shown with real programs on this machine. `options.ts` says how to use it,
 * `story.ts` is what happens.
 */

/** A shell's exit code for what Ctrl-C ended. */
const INTERRUPTED = 130

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  let options: DemoOptions
  try {
    options = parseOptions(args)
  } catch (error) {
    process.stderr.write(`demo: ${(error as Error).message}\n\n${HELP}`)
    return 2
  }
  if (options.help) {
    process.stdout.write(HELP)
    return 0
  }
  const interrupted = interruption()
  const screen = createScreen(options)
  try {
    await play(screen, options, interrupted)
    if (options.svg !== undefined) await writeFile(options.svg, drawSvg(screen.lines))
    return 0
  } catch (error) {
    if (interrupted.aborted) {
      process.stderr.write('demo: interrupted; everything it started is gone\n')
      return INTERRUPTED
    }
    process.stderr.write(`demo: ${describe(error)}\n`)
    return 1
  }
}

/** The whole run; what it started is gone when this ends, and so is the folder, unless it is to be kept. */
async function play(screen: Screen, { keep }: DemoOptions, signal: AbortSignal): Promise<void> {
  const folder = await DemoFolder.create()
  try {
    await tellStory(screen, folder, signal)
  } finally {
    if (!keep) await folder[Symbol.asyncDispose]()
  }
  screen.say(keep ? `  kept: ${folder.path}` : `  ${folder.path} is removed`)
}

/** Fires at the first signal to end, or when nobody reads the output any more. Later signals change nothing. */
function interruption(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => controller.abort())
  process.stdout.on('error', () => controller.abort())
  return controller.signal
}

function createScreen({ plain }: DemoOptions): Screen {
  const { stdout, env } = process
  return new Screen({
    write: (text) => stdout.write(text),
    colours: !plain && wantsColours(env, stdout.isTTY === true),
    unicode: speaksUnicode(env),
    pictures: !plain,
  })
}

function describe(error: unknown): string {
  if (error instanceof BrokenPromise) return `this did not hold: ${error.message}`
  return error instanceof Error ? error.message : String(error)
}
