import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { CheckContext } from './check-context.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** The header counts whole seconds, and an answer takes time. */
const TOLERANCE_MS = 30_000
/** From here on, certificates and signatures of today are refused. */
const DANGER_MS = 10 * 60_000

/**
 * Holds this machine's clock against those of the origins, milliseconds since 1970, of which the median counts (one may
 * be wrong), and against the files that the mirror wrote when its clock said something later.
 */
export async function judgeClock(dates: readonly number[], { config, now }: CheckContext): Promise<Finding> {
  const about = findingsAbout('clock')
  const here = now()
  const remedy = 'Set the clock (NTP); in a virtual machine or container, that of its host.'
  const sorted = dates.map((date) => here.getTime() - date).sort((a, b) => a - b)
  const ahead = sorted[Math.floor((sorted.length - 1) / 2)]
  if (ahead === undefined) {
    const written = await findNewest(config.dataDir)
    if (written !== undefined && written.at - here.getTime() > DANGER_MS) {
      const at = new Date(written.at).toISOString()
      return about.problem(`it says ${here.toISOString()}, and ${written.file} was written at ${at}`, remedy)
    }
    return about.skipped(`it says ${here.toISOString()}; no origin told the time to compare`)
  }
  const amount = `${Math.round(Math.abs(ahead) / 1000)} s ${ahead > 0 ? 'ahead of' : 'behind'} the origins`
  if (Math.abs(ahead) > DANGER_MS) {
    const text = `${here.toISOString()} is ${amount}: certificates, signatures and caches are judged by a wrong time`
    return about.problem(text, remedy)
  }
  if (Math.abs(ahead) > TOLERANCE_MS) return about.warning(`${here.toISOString()} is ${amount}`, remedy)
  return about.ok(`it agrees with the origins (${Math.round(Math.abs(ahead) / 1000)} s apart)`)
}

/** The lock is touched every few seconds while the mirror runs. */
async function findNewest(dataDir: string): Promise<{ file: string; at: number } | undefined> {
  const files = ['format', 'lock'].map((name) => join(dataDir, name))
  const found = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ mtimeMs: at }) => ({ file, at }),
        () => undefined,
      ),
    ),
  )
  return found.filter((each) => each !== undefined).sort((a, b) => b.at - a.at)[0]
}
