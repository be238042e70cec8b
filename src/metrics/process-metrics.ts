import { collectDefaultMetrics, Registry } from 'prom-client'

/** Gauges whose names end like those of counters: promtool refuses them. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

let registry: Registry | undefined

/**
 * What prom-client tells of every Node.js process: processor time, memory, open files, delays of the event loop, garbage
 * collection. There is one for the process, since what it observes cannot be given back.
 */
export function processMetrics(): Registry {
  if (registry === undefined) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry })
    for (const name of MISNAMED) registry.removeSingleMetric(name)
  }
  return registry
}
