import type { Command } from 'commander'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'

/** What `addConfigOptions` gives a command's action. */
export interface ConfigOptions {
  readonly config?: string
  readonly set: readonly string[]
}

/** Adds the options by which a command finds its configuration. */
export function addConfigOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file; default: config.yaml here, if there is one')
    .option(
      '--set <key=value>',
      'set one key of the configuration, e.g. listen.port=9443',
      (value: string, earlier: readonly string[]) => [...earlier, value],
      [],
    )
}

/**
 * Loads the configuration that the options name; with `only`, these keys of it.
 * @throws MirrorError `CONFIGURATION`
 */
export function loadConfigFor({ config: file, set }: ConfigOptions, only?: readonly (keyof Config)[]): Promise<Config> {
  const chosen = { ...(file === undefined ? {} : { file }), ...(only === undefined ? {} : { only }) }
  return loadConfig({ ...chosen, set, cwd: process.cwd(), env: process.env })
}
