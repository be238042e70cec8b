import { listMetrics } from '../monitoring/metric-names.ts'

const START = '<!-- metrics: written by `npm run docs` -->\n'
const END = '<!-- end of metrics -->'

/** The page with its table of metrics as the code has them; all else on it is written by hand. */
export function renderMonitoringPage(page: string): string {
  const [before = '', rest = ''] = page.split(START)
  const [, after] = rest.split(END)
  if (after === undefined) throw new Error('docs/monitoring.md has lost the marks around its table')
  const rows = listMetrics().map(({ name, type, labels, help }) => {
    const named = labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${named} | ${help} |\n`
  })
  return `${before}${START}\n| metric | type | labels | |\n|---|---|---|---|\n${rows.join('')}\n${END}${after}`
}
