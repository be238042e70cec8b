import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { measureArchives } from './archives.ts'
import { measureBeside } from './beside.ts'
import { measureCold } from './cold.ts'
import { measureDocuments } from './documents.ts'
import { measureH1 } from './h1.ts'
import { measureInit } from './init.ts'
import { measureMemory } from './memory.ts'
import { formatPlainSection, formatReport } from './report.ts'
import type { Section } from './row.ts'
import { openStage, type Stage } from './stage.ts'
import { measureStart } from './start.ts'
import { measureStock } from './stock.ts'
import { assertTools, type Tool } from './tools.ts'

const USAGE = `npm run bench -- [--only NAME,NAME] [--rounds N] [--write]

Measures the whole system beside nginx, on this machine, and prints each figure with its target.

  --only     some of: SECTIONS
  --rounds   how often each comparison is made; default 5
  --write    write docs/performance.md (only with all parts)
  --help     this text
`
const REPORT = new URL('../../docs/performance.md', import.meta.url)

const SECTIONS: Readonly<Record<string, { tools: readonly Tool[]; measure: (stage: Stage) => Promise<Section> }>> = {
  documents: { tools: ['wrk', 'taskset'], measure: measureDocuments },
  archives: { tools: ['taskset'], measure: measureArchives },
  cold: { tools: [], measure: measureCold },
  beside: { tools: ['wrk', 'taskset'], measure: measureBeside },
  h1: { tools: ['unzip', 'openssl'], measure: measureH1 },
  start: { tools: [], measure: measureStart },
  memory: { tools: [], measure: measureMemory },
  stock: { tools: [], measure: measureStock },
  init: { tools: ['terraform'], measure: measureInit },
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(error instanceof Error && error.cause === undefined ? error.message : error)
  process.exitCode = 1
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const usage = USAGE.replace('SECTIONS', Object.keys(SECTIONS).join(', '))
  const names = values.only?.split(',') ?? Object.keys(SECTIONS)
  const unknown = names.filter((name) => SECTIONS[name] === undefined)
  const rounds = Number(values.rounds)
  const wrong = unknown.length > 0 || !(Number.isInteger(rounds) && rounds > 0) || (values.write && values.only)
  if (values.help || wrong) {
    console.log(usage)
    return values.help ? 0 : 2
  }
  assertMachine(names)
  build()
  const startedAt = performance.now()
  const sections = await measureAll(names, rounds)
  const minutes = (performance.now() - startedAt) / 60_000
  if (values.write) writeFileSync(REPORT, formatReport(sections, { rounds, minutes }))
  const failed = sections.flatMap(({ rows }) => rows).filter(({ met }) => met === false)
  console.log(`${failed.length} targets not met, ${minutes.toFixed(1)} minutes`)
  return 0
}

async function measureAll(names: readonly string[], rounds: number): Promise<Section[]> {
  await using stage = await openStage(rounds)
  const sections: Section[] = []
  for (const name of names) {
    const section = await SECTIONS[name]?.measure(stage)
    if (section === undefined) continue
    sections.push(section)
    console.log(`${formatPlainSection(section)}\n`)
  }
  return sections
}

/** @throws Error that says what is missing */
function assertMachine(names: readonly string[]): void {
  if (process.platform !== 'linux') throw new Error('the benchmark reads /proc: it runs on Linux alone')
  if (cpus().length < 2) throw new Error('the benchmark needs two cores: one for servers, one for clients')
  assertTools(['nginx', 'curl', ...names.flatMap((name) => SECTIONS[name]?.tools ?? [])])
}

/** As `npm start` does before it starts. @throws Error if it fails */
function build(): void {
  const cwd = new URL('../..', import.meta.url).pathname
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd, stdio: 'inherit' })
  if (status !== 0) throw new Error('npm run build failed')
}
