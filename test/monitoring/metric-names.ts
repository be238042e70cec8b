import { Metrics } from '../../src/metrics/metrics.ts'
import { processMetrics } from '../../src/metrics/process-metrics.ts'

/** One metric that a mirror has, under some configuration. */
export interface DeclaredMetric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

/** All metrics of the mirror itself, in the order in which it tells them. */
export function listMetrics(): DeclaredMetric[] {
  return new Metrics({ origins: [], perProvider: true }).registry.getMetricsAsArray().map(declared)
}

/** Those that prom-client adds of the process. */
export function listProcessMetrics(): DeclaredMetric[] {
  return processMetrics().getMetricsAsArray().map(declared)
}

/** Names of series in a PromQL expression that are ours or of the process, without the endings of histograms. */
export function metricNamesIn(expression: string): string[] {
  const outside = expression.replace(/\{[^}]*\}/g, '')
  const names = outside.match(/\b(?:terramirror|process|nodejs)_\w+/g) ?? []
  return names.map((name) => name.replace(/(_seconds)_(?:bucket|sum|count)$/, '$1'))
}

/** The types of prom-client say a number for the type, and no labels. */
function declared(metric: { name: string; help: string }): DeclaredMetric {
  const { name, help } = metric
  const type = String(Reflect.get(metric, 'type')) as DeclaredMetric['type']
  return { name, help, type, labels: (Reflect.get(metric, 'labelNames') as string[]).filter((label) => label !== 'le') }
}
