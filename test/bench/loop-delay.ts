import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/*
 * Loaded into a mirror by `--import`: on SIGUSR2 it prints the longest time that the event loop was blocked since the
 * last time, as `loop delay N ms`.
 */

const RESOLUTION_MS = 1

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  process.on('SIGUSR2', () => {
    process.stdout.write(`loop delay ${(delay.max / 1e6 - RESOLUTION_MS).toFixed(1)} ms\n`)
    delay.reset()
  })
}
