import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { listMetrics } from '../monitoring/metric-names.ts'
import { renderMonitoringPage } from './monitoring-page.ts'

const page = readFileSync(new URL('../../docs/monitoring.md', import.meta.url), 'utf8')

test('docs/monitoring.md has the table of metrics that `npm run docs` writes', () => {
  expect(page).toBe(renderMonitoringPage(page))
  for (const { name } of listMetrics()) expect(page).toContain(`| \`${name}\` |`)
})

test('every metric that the page speaks of exists', () => {
  const known = listMetrics().map(({ name }) => name)
  const named = [...page.matchAll(/`(terramirror_\w+)`/g)].map(([, name]) => name)
  expect(named.length).toBeGreaterThan(known.length)
  for (const name of named) expect(known).toContain(name)
})
