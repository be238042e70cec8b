import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { CommandError, wrongUse } from '../command-error.ts'
import type { Endpoint } from './endpoint.ts'

/** The variable that holds the token of the admin API. */
export const TOKEN_VARIABLE = 'TERRAMIRROR_ADMIN_TOKEN'

/** What is sent to the admin API as bearer token, and where it was found, for messages. */
export interface FoundToken {
  readonly token: string
  readonly source: string
}

/** Where a token may be. */
export interface TokenPlaces {
  /** `--token` */
  readonly token?: string
  /** `--token-file` */
  readonly tokenFile?: string
  readonly env: NodeJS.ProcessEnv
  readonly config: Pick<Config, 'admin' | 'stateDir'>
}

/**
 * Finds the token: `--token`, `--token-file`, the variable, and for a mirror of this machine `admin.token` of the
 * configuration and `admin-token` in `stateDir`. Those two go to no other machine.
 * @throws CommandError that says where it looked; never with a token
 */
export async function findToken(places: TokenPlaces, endpoint: Endpoint): Promise<FoundToken> {
  const { token, tokenFile, env, config } = places
  if (token !== undefined) return check(token, '--token')
  if (tokenFile !== undefined) return readToken(tokenFile, `--token-file ${tokenFile}`)
  const fromEnvironment = env[TOKEN_VARIABLE]
  if (fromEnvironment !== undefined && fromEnvironment !== '') return check(fromEnvironment, TOKEN_VARIABLE)
  const file = join(config.stateDir, 'admin-token')
  if (!endpoint.isOurs) {
    throw new CommandError(
      `no token for ${endpoint.name}: set ${TOKEN_VARIABLE}, or give --token-file FILE (on the mirror's machine it is in admin-token in its stateDir)`,
    )
  }
  const configured = config.admin === 'off' ? undefined : config.admin.token
  if (configured !== undefined) return check(configured, 'admin.token of the configuration')
  return readToken(file, file)
}

async function readToken(file: string, source: string): Promise<FoundToken> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(`no token: ${explain(code, file)}`, { cause: error })
  }
  return check(text.trim(), source)
}

function explain(code: string | undefined, file: string): string {
  const others = `${TOKEN_VARIABLE} or --token-file FILE`
  if (code === 'ENOENT') {
    return `${file} does not exist; the mirror makes it when it starts for the first time: is this its configuration (--config FILE)? Else give ${others}`
  }
  if (code === 'EACCES') return `${file} may not be read; run this as the user of the mirror, or give ${others}`
  return `${file} cannot be read (${code ?? 'unknown error'}); give ${others}`
}

function check(token: string, source: string): FoundToken {
  if (/^[\x21-\x7e]+$/.test(token)) return { token, source }
  throw wrongUse(`${source}: expected a token of printable ASCII characters without spaces`)
}
