import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { type RunReport, run } from './run.ts'

/*
 * `node test/chaos/soak.ts [--minutes 60] [--runs N] [--seed N] [--steps 3000] [--one-life]`: chaos runs, one after
 * another, until the time is over or one finds a violation. Seeds count up from the first. `--one-life` leaves out
 * everything that ends the mirror's process, to see whether a long life leaks.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    runs: { type: 'string', default: 'Infinity' },
    seed: { type: 'string' },
    steps: { type: 'string', default: '3000' },
    'one-life': { type: 'boolean', default: false },
  },
})

const end = Date.now() + 60_000 * Number(values.minutes)
const firstSeed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed)
const kinds: Record<string, number> = {}
const answers: Record<string, number> = {}
let steps = 0

for (let count = 0; count < Number(values.runs) && Date.now() < end; count += 1) {
  const report = await run({
    seed: firstSeed + count,
    steps: Number(values.steps),
    ...(values['one-life'] ? { except: endsLife } : {}),
    onProgress: (step) => step % 500 === 0 && console.log(`  seed ${firstSeed + count}: ${step} steps`),
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
  steps += report.steps
  for (const [kind, count] of Object.entries(report.kinds)) kinds[kind] = (kinds[kind] ?? 0) + count
  for (const [answer, count] of Object.entries(report.answers)) answers[answer] = (answers[answer] ?? 0) + count
  const memory = report.rests.map(({ life, heapMB, rssMB, descriptors }) => `${life}:${heapMB}/${rssMB}/${descriptors}`)
  const result = report.violation === undefined ? 'no violation' : 'VIOLATION'
  console.log(`seed ${report.seed}: ${report.steps} steps in ${report.seconds} s, ${report.lives} lives, ${result}`)
  console.log(`  at rest, life:heap MB/RSS MB/descriptors: ${memory.join(' ')}`)
}

function format(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([name, count]) => `\n  ${String(count).padStart(7)}  ${name}`).join('')
}
