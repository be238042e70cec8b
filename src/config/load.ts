import { readFile } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import { MirrorError } from '../errors.ts'
import { type ConfigDocument, parseConfigDocument } from './config-document.ts'
import { errorCode, interpolate } from './interpolation.ts'
import { applyOverride, type Override, parseOverride } from './overrides.ts'
import { proxyFromEnvironment } from './proxy-environment.ts'
import { type Config, createSchema, createSections } from './schema.ts'
import { formatKeyPath, type KeyPath } from './schema-path.ts'
import { listProblems, type Problem } from './schema-problems.ts'
import { token } from './value-kinds.ts'

/** The one variable that is read without being named in the configuration. */
const ADMIN_TOKEN_VARIABLE = 'TERRAMIRROR_ADMIN_TOKEN'

/** Where the configuration comes from. */
export interface LoadOptions {
  /** `--config FILE`, relative to `cwd`; without it `config.yaml` in `cwd` is read if it exists. */
  readonly file?: string
  /** The values of `--set`, in order; they win over the file. */
  readonly set: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** Only these keys are read, the others stay at their defaults: their placeholders and mistakes are not looked at. */
  readonly only?: readonly (keyof Config)[]
}

/**
 * Loads the configuration: file, then `--set`, then placeholders, then checks and defaults. Relative paths, also those
 * given by `--set`, are resolved against the file's folder, without a file against `cwd`. Without `upstream.proxy` the
 * proxy variables of the environment apply (`proxyFromEnvironment`), without `admin.token` its `TERRAMIRROR_ADMIN_TOKEN`.
 * @throws MirrorError `CONFIGURATION`, one line for each problem, with its key and its place; values never appear
 */
export async function loadConfig(options: LoadOptions): Promise<Config> {
  const source = await openDocument(options)
  const sections = createSections(source.folder)
  let settings = source.document.settings
  const overrides: Override[] = []
  for (const text of options.set) {
    const override = parseOverride(text, sections, settings)
    overrides.push(override)
    settings = applyOverride(settings, override)
  }
  settings = pickKeys(settings, options.only)
  const problems: Problem[] = []
  const report = (path: KeyPath, message: string) => problems.push({ path, message, namesKey: false })
  const filled = await interpolate(settings, { env: options.env, folder: source.folder, report })
  const placeOf = (path: KeyPath) => {
    const isOverride = overrides.some((override) => override.path.every((key, index) => key === path[index]))
    return isOverride ? '--set' : source.document.place(path)
  }
  assertNoProblems(problems, placeOf)
  const parsed = createSchema(source.folder).safeParse(filled)
  if (!parsed.success) {
    assertNoProblems(listProblems(sections, parsed.error.issues), placeOf)
    throw new MirrorError('CONFIGURATION', 'the configuration is not valid', {})
  }
  return withAdminTokenOfEnvironment(withProxyOfEnvironment(parsed.data, options.env), options.env)
}

/** Empty means not set. @throws MirrorError `CONFIGURATION` naming the variable, not its value */
function withAdminTokenOfEnvironment(config: Config, env: NodeJS.ProcessEnv): Config {
  const text = env[ADMIN_TOKEN_VARIABLE]
  if (!text || config.admin === 'off' || config.admin.token !== undefined) return config
  const { data, error } = token().safeParse(text)
  if (data !== undefined) return { ...config, admin: { ...config.admin, token: data } }
  const message = `environment variable ${ADMIN_TOKEN_VARIABLE}: ${error?.issues[0]?.message}`
  throw new MirrorError('CONFIGURATION', message, { key: 'admin.token' })
}

function pickKeys(settings: unknown, only: LoadOptions['only']): unknown {
  if (only === undefined) return settings
  return Object.fromEntries(Object.entries(Object(settings)).filter(([key]) => only.some((wanted) => wanted === key)))
}

function withProxyOfEnvironment(config: Config, env: NodeJS.ProcessEnv): Config {
  const { proxy, ...upstream } = config.upstream
  if (proxy === 'off') return { ...config, upstream }
  if (proxy !== undefined) return config
  return { ...config, upstream: { ...proxyFromEnvironment(env), ...upstream } }
}

interface Source {
  readonly document: ConfigDocument
  readonly folder: string
}

async function openDocument({ file, cwd }: LoadOptions): Promise<Source> {
  const path = resolve(cwd, file ?? 'config.yaml')
  const name = file ?? 'config.yaml'
  try {
    const text = await readFile(path, 'utf8')
    return { document: parseConfigDocument(text, name), folder: dirname(path) }
  } catch (error) {
    if (error instanceof MirrorError) throw error
    if (file === undefined && errorCode(error) === 'ENOENT') {
      return { document: parseConfigDocument('', 'defaults'), folder: cwd }
    }
    const message = `configuration file ${relative(cwd, path) || path} cannot be read (${errorCode(error)})`
    throw new MirrorError('CONFIGURATION', message, {}, error)
  }
}

function assertNoProblems(problems: readonly Problem[], placeOf: (path: KeyPath) => string): void {
  const [first] = problems
  if (first === undefined) return
  const lines = problems.map(({ path, message, namesKey }) => {
    const key = formatKeyPath(path)
    return `${placeOf(path)}: ${namesKey || key === '' ? '' : `${key}: `}${message}`
  })
  throw new MirrorError('CONFIGURATION', [...new Set(lines)].join('\n'), { key: formatKeyPath(first.path) })
}
