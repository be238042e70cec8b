import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import type { Section } from './row.ts'
import { pathOf } from './tools.ts'

const INTRODUCTION = `# Performance

Written by \`npm run bench -- --write\`; do not edit. Everything runs on one machine and over its loopback: the mirror as
\`npm start\` starts it, nginx as the origin, nginx again as the peer with the same files, the same certificate and TLS 1.3.

Speeds differ by a factor of two from one hour to the next on shared machines, so what counts are ratios: in each round
every candidate runs once, one after another, each round beginning with another one; the ratio is taken round by round.
What is shown is the median, with the least and the greatest in brackets: \`0.72 x [0.70..0.75]\`.

The targets are goals for the same run on the same machine, not promises for yours. A loopback has no latency and no
loss, so what is compared is processor time; over a real network the differences between servers are smaller than here.
`

/** The whole report in Markdown. */
export function formatReport(sections: readonly Section[], facts: { rounds: number; minutes: number }): string {
  return [INTRODUCTION, describeMachine(facts), ...sections.map(formatSection)].join('\n')
}

/** A section for a terminal. */
export function formatPlainSection({ title, rows }: Section): string {
  const lines = rows.map(({ what, measured, target, met }) => {
    const verdict = target === undefined ? '' : `  (target ${target}: ${met ? 'met' : 'NOT MET'})`
    return `  ${what.replaceAll('`', '')}: ${measured}${verdict}`
  })
  return [title, ...lines].join('\n')
}

function formatSection({ title, method, rows }: Section): string {
  const lines = rows.map(({ what, target = '', measured, met }) => {
    const verdict = met === undefined ? '' : met ? 'yes' : '**no**'
    return `| ${what.replaceAll('|', '\\|')} | ${target} | ${measured} | ${verdict} |`
  })
  return [`## ${title}`, '', method, '', '| | target | measured | met |', '|---|---|---|---|', ...lines, ''].join('\n')
}

function describeMachine({ rounds, minutes }: { rounds: number; minutes: number }): string {
  const [load = ''] = readFileSync('/proc/loadavg', 'utf8').split(' ')
  const facts = [
    `${cpus().length} x ${cpus()[0]?.model.trim()}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `Linux ${release()}`,
    `Node.js ${process.versions.node}`,
    versionOf('nginx', ['-v']),
    versionOf('curl', ['--version']),
    versionOf('terraform', ['version']),
  ]
  const date = new Date().toISOString().slice(0, 16).replace('T', ' ')
  return `Run of ${date} UTC, ${minutes.toFixed(0)} minutes, ${rounds} rounds; load average at its end ${load}.\n${facts.filter(Boolean).join(' · ')}\n`
}

/** First line of what a program says of itself. Some say it on stderr. */
function versionOf(tool: 'nginx' | 'curl' | 'terraform', args: string[]): string {
  const { stdout, stderr } = spawnSync(pathOf(tool), args, { encoding: 'utf8' })
  const line = `${stdout}${stderr}`.split('\n', 1)[0] ?? ''
  return line.replace(/^nginx version: /, '').split(' (')[0] ?? ''
}
