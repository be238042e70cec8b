import { dirname } from 'node:path'
import { loadConfig } from '../../src/config/load.ts'
import { createLog } from '../../src/log.ts'
import { startServer } from '../../src/server.ts'
import { type DiskFault, installDiskFaults, setDiskFault } from './disk-fault.ts'

/*
 * A mirror as a process that a test leads: `node --expose-gc test/chaos/mirror-process.ts CONFIG AHEAD_MS`. Its clock
 * and its disk are set by messages; each is answered when it has taken effect. After `stop` nothing is left that keeps
 * the process alive, and it ends by itself. It ends at once when its leader is gone, and not before: Ctrl+C reaches both.
 */

/** What the process is told. */
export type Order =
  | { readonly order: 'clock'; readonly aheadMs: number }
  | { readonly order: 'disk'; readonly fault: DiskFault }
  | { readonly order: 'usage' }
  | { readonly order: 'stop'; readonly graceMs: number }

/** How much the process uses, after a garbage collection. */
export interface Usage {
  readonly heapBytes: number
  readonly externalBytes: number
  readonly rssBytes: number
  /** What keeps the process alive, e.g. `Timeout`, each as often as it is there. */
  readonly resources: readonly string[]
}

const [configFile = '', startAheadMs = '0'] = process.argv.slice(2)
let aheadMs = Number(startAheadMs)

let stopping = false

process.on('SIGINT', () => undefined)
process.once('disconnect', () => !stopping && process.exit(1))
await installDiskFaults()
const config = await loadConfig({ file: configFile, set: [], cwd: dirname(configFile), env: {} })
const server = await startServer({
  config,
  version: '0.0.0-chaos',
  log: createLog(config.log, process.stderr),
  now: () => Date.now() + aheadMs,
})
process.on('message', (message: { id: number } & Order) => {
  void obey(message).then((result) => {
    process.send?.({ id: message.id, result })
    if (message.order === 'stop') process.disconnect()
  })
})
process.send?.({ url: server.url, caFile: server.caFile })

async function obey(message: Order): Promise<unknown> {
  switch (message.order) {
    case 'clock':
      aheadMs = message.aheadMs
      return undefined
    case 'disk':
      setDiskFault(message.fault)
      return undefined
    case 'usage':
      return usage()
    case 'stop':
      stopping = true
      return server.close(message.graceMs)
  }
}

function usage(): Usage {
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  return {
    heapBytes: heapUsed,
    externalBytes: external,
    rssBytes: rss,
    resources: process.getActiveResourcesInfo().sort(),
  }
}
