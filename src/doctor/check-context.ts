import type { Config } from '../config/schema.ts'
import type { Log } from '../log.ts'

/** What every check may need. */
export interface CheckContext {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  /** Where clients reach the mirror, ending with `/`; undefined if nothing says so. */
  readonly baseUrl: URL | undefined
  /** No origin is asked. */
  readonly isOffline: boolean
  /** The mirror of this configuration runs on this machine. */
  readonly isRunning: boolean
  /** Providers that origins are asked for, and the mirror as a client, beside the well-known and the held ones. */
  readonly providers: readonly string[]
  readonly now: () => Date
  /** For parts of the mirror that are used; says nothing. */
  readonly log: Log
}
