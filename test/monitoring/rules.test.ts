import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { listMetrics, metricNamesIn } from './metric-names.ts'
import { describePrometheus, MONITORING, promtool } from './prometheus-tools.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { severity: string }
  readonly annotations: { summary: string; description: string; runbook: string }
}

const rules: Rule[] = parse(readFileSync(join(MONITORING, 'terramirror.rules.yaml'), 'utf8')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
)
const tests = readFileSync(join(MONITORING, 'terramirror.rules.test.yaml'), 'utf8')
const page = readFileSync(join(MONITORING, '../../docs/monitoring.md'), 'utf8')
const known = new Set(listMetrics().map(({ name }) => name))

/** As GitHub makes them. */
const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
  title
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-'),
)

describe('every alert', () => {
  it.each(rules)('$alert has a severity, words, and a paragraph that says what to do', ({ labels, annotations }) => {
    expect(['critical', 'warning']).toContain(labels.severity)
    expect(annotations.summary).toMatch(/^[A-Z]/)
    expect(annotations.description).toMatch(/\.$/)
    const [file, anchor] = annotations.runbook.split('#')
    expect(file).toBe('docs/monitoring.md')
    expect(anchors).toContain(anchor)
  })

  it.each(rules)('$alert asks for metrics that there are', ({ alert, expr }) => {
    const names = metricNamesIn(expr)
    expect(names.length > 0 || alert === 'TerramirrorDown').toBe(true)
    for (const name of names) expect(known, name).toContain(name)
  })

  it.each(rules)('$alert has a test', ({ alert }) => {
    expect(tests).toMatch(new RegExp(`alertname(: |=")${alert}\\b`))
  })
})

describePrometheus('promtool', () => {
  const cwd = MONITORING

  it('accepts the rules and the scrape configuration', () => {
    expect(promtool(['check', 'rules', 'terramirror.rules.yaml'], { cwd })).toMatchObject({ ok: true })
    expect(promtool(['check', 'config', '--syntax-only', 'prometheus.yaml'], { cwd })).toMatchObject({ ok: true })
  })

  it('sees every alert fire when there is trouble, and none without', () => {
    const { ok, text } = promtool(['test', 'rules', 'terramirror.rules.test.yaml'], { cwd })
    expect(ok, text).toBe(true)
  }, 120_000)
})
