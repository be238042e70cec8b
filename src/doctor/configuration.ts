import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { isMirrorError } from '../errors.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Where the configuration is to be found. */
export interface ConfigurationPlace {
  readonly file?: string
  readonly set: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** The configuration as the mirror would read it, if it can; a finding for each thing that is wrong with it. */
export async function readConfigured(
  place: ConfigurationPlace,
): Promise<{ readonly config: Config | undefined; readonly findings: readonly Finding[] }> {
  const about = findingsAbout('configuration')
  const isThere = place.file !== undefined || existsSync(join(place.cwd, 'config.yaml'))
  const found = isThere ? `${place.file ?? 'config.yaml'} is valid` : 'no config.yaml is here: the defaults apply'
  try {
    const config = await loadConfig(place)
    return { config, findings: [about.ok(found)] }
  } catch (error) {
    if (!isMirrorError(error)) throw error
    const remedy = 'Mend it as docs/configuration.md says; the mirror does not start with it.'
    return { config: undefined, findings: error.message.split('\n').map((line) => about.problem(line, remedy)) }
  }
}
