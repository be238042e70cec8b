import { randomInt } from 'node:crypto'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { type RunReport, run } from './run.ts'

const USAGE = `Usage: npm run soak -- [options]

Runs chaos after chaos against a mirror, each with the next seed, until the time is over or one finds a violation.
Tells a line for each run, and at the end what was done and answered.

Options:
  --minutes N   begin no new run after this time; default 60
  --runs N      end after so many runs; default: no limit
  --seed N      seed of the first run; default: a random one
  --steps N     steps of each run; default 3000
  --one-life    leave out all that ends the mirror's process, to see whether a long life leaks
  --help        print this

Exit codes: 0 no violation, 1 a violation, 2 wrong use.

Example, a night of it:
  npm run soak -- --minutes 480
Example, one run again as it was:
  npm run soak -- --seed 11 --steps 1000 --runs 1`

const OPTIONS = {
  minutes: { type: 'string', default: '60' },
  runs: { type: 'string' },
  seed: { type: 'string' },
  steps: { type: 'string', default: '3000' },
  'one-life': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} satisfies ParseArgsConfig['options']

/** What to do, from the command line. Ends the process if that is wrong, or asks for help. */
function readOptions(): { minutes: number; runs: number; seed: number; steps: number; oneLife: boolean } {
  try {
    const { values } = parseArgs({ options: OPTIONS })
    if (values.help) {
      console.log(USAGE)
      process.exit(0)
    }
    const { minutes, runs, seed, steps } = values
    return {
      minutes: readNumber('minutes', minutes),
      runs: runs === undefined ? Number.POSITIVE_INFINITY : readNumber('runs', runs),
      seed: seed === undefined ? randomInt(2 ** 31) : readNumber('seed', seed),
      steps: readNumber('steps', steps),
      oneLife: values['one-life'],
    }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exit(2)
  }
}

/** @throws Error */
function readNumber(name: string, text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new Error(`--${name} wants a whole number, and got "${text}"`)
}

const { minutes, runs, seed: firstSeed, steps: stepsOfEach, oneLife } = readOptions()
const end = Date.now() + 60_000 * minutes
const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())
process.once('SIGTERM', () => interrupted.abort())
const kinds: Record<string, number> = {}
const answers: Record<string, number> = {}
let steps = 0

for (let count = 0; count < runs && Date.now() < end && !interrupted.signal.aborted; count += 1) {
  const report = await run({
    seed: firstSeed + count,
    steps: stepsOfEach,
    signal: interrupted.signal,
    ...(oneLife ? { except: endsLife } : {}),
  })
  tell(report)
  if (report.violation !== undefined) {
    console.error(report.violation)
    process.exitCode = 1
    break
  }
}
console.log(`${steps} steps in all.\nSteps by kind: ${format(kinds)}\nAnswers: ${format(answers)}`)

function endsLife(kind: string): boolean {
  return /restart|kill|sealed/.test(kind)
}

function tell(report: RunReport): void {
  const { seed, seconds, busySeconds, lives, rests, violation } = report
  steps += report.steps
  for (const [kind, count] of Object.entries(report.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count
  for (const [answer, count] of Object.entries(report.answers)) answers[answer] = (answers[answer] ?? 0) + count
  const last = rests.at(-1)
  const memory = last === undefined ? '' : `, at rest ${last.heapMB} MB heap and ${last.descriptors} descriptors`
  const result = violation === undefined ? 'no violation' : 'VIOLATION'
  console.log(
    `seed ${seed}: ${report.steps} steps in ${seconds} s (machine busy for ${busySeconds} s), ${lives} lives${memory}: ${result}`,
  )
}

function format(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([name, count]) => `\n  ${String(count).padStart(7)}  ${name}`).join('')
}
