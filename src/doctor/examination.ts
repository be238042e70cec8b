import { createLog } from '../log.ts'
import { findProviderAddress, parseProviderAddressText } from '../protocol/provider-address.ts'
import { checkAdmin } from './admin-listener.ts'
import { checkCertificate } from './certificate.ts'
import { type Check, runChecks } from './check.ts'
import type { CheckContext } from './check-context.ts'
import { checkClientFile } from './client-file.ts'
import { readConfigured } from './configuration.ts'
import type { Finding } from './finding.ts'
import { checkFolders } from './folders.ts'
import { checkFront } from './front.ts'
import { findHeldPackage } from './held-package.ts'
import { findLockState, judgeLock } from './lock.ts'
import { createOriginChecks } from './origins.ts'
import { checkProxy } from './proxy.ts'
import { checkListener } from './public-listener.ts'
import { checkSecretFiles } from './secret-files.ts'
import { checkServedCertificate } from './served-certificate.ts'
import { checkSpace } from './space.ts'

/** No check takes longer than this. */
const LIMIT_MS = 30_000

/** One that everybody mirrors, by its registry. */
const WELL_KNOWN: Readonly<Record<string, string>> = {
  'registry.terraform.io': 'hashicorp/null',
  'registry.opentofu.org': 'hashicorp/null',
}

/** What to examine. */
export interface ExaminationOptions {
  /** Configuration file; default `config.yaml` in `cwd`, if there is one. */
  readonly file?: string
  /** The values of `--set`. */
  readonly set: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** A CLI configuration of a client. */
  readonly clientFile?: string
  /** Where clients reach the mirror, ending with `/`; default `publicUrl`. */
  readonly baseUrl?: URL
  /** No origin is asked. */
  readonly isOffline: boolean
  /** `HOST/NAMESPACE/TYPE`, to ask their origins for, and the mirror. */
  readonly providers: readonly string[]
  /** Default: the clock. */
  readonly now?: () => Date
  /** Limit of each check; default half a minute. */
  readonly limitMs?: number
}

/**
 * Examines a mirror, whether it runs or not: configuration, folders, certificate, ports, origins, what clients see. It
 * changes nothing. Findings come in a fixed order. Without a configuration that can be read, that is all it finds.
 */
export async function examine(options: ExaminationOptions): Promise<readonly Finding[]> {
  const { file, set, cwd, env, clientFile, providers } = options
  const place = { ...(file === undefined ? {} : { file }), set, cwd, env }
  const { config, findings } = await readConfigured(place)
  if (config === undefined) return findings
  const lock = await findLockState(config.dataDir)
  const url = options.baseUrl?.href ?? config.publicUrl
  const context: CheckContext = {
    ...{ config, env, providers, isOffline: options.isOffline },
    baseUrl: url === undefined ? undefined : new URL(url),
    isRunning: lock.kind === 'running',
    now: options.now ?? (() => new Date()),
    log: createLog({ level: 'silent', format: 'json' }, { write: () => undefined }),
  }
  const checks: readonly Check[] = [
    { name: 'secret files', run: () => checkSecretFiles(context, file, cwd) },
    { name: 'folders', run: () => checkFolders(config) },
    { name: 'space', run: () => checkSpace(config) },
    { name: 'lock', run: async () => [judgeLock(config.dataDir, lock)] },
    { name: 'listener', run: () => checkListener(context) },
    { name: 'admin API', run: (signal) => checkAdmin(context, signal) },
    { name: 'certificate', run: () => checkCertificate(context) },
    { name: 'served certificate', run: (signal) => checkServedCertificate(context, signal) },
    { name: 'proxy', run: (signal) => checkProxy(context, signal) },
    ...createOriginChecks(context, (hostname) => chooseProvider(hostname, context)),
    { name: 'base URL', run: (signal) => checkFront(context, signal) },
    ...(clientFile === undefined
      ? []
      : [{ name: 'client file', run: (signal: AbortSignal) => checkClientFile(clientFile, cwd, context, signal) }]),
  ]
  return [...findings, ...(await runChecks(checks, options.limitMs ?? LIMIT_MS))]
}

/** `NAMESPACE/TYPE`: what the user names, else what is held, else what everybody has. */
async function chooseProvider(hostname: string, { providers, config, log }: CheckContext): Promise<string | undefined> {
  const named = providers.map(parseProviderAddressText).find((address) => address.hostname === hostname)
  const held = named ?? (await findHeldPackage(config.dataDir, log, hostname))?.address
  if (held !== undefined) return `${held.namespace}/${held.type}`
  return WELL_KNOWN[hostname]
}

/** True for a text that `--provider` takes: `HOST/NAMESPACE/TYPE`. */
export function isProviderText(text: string): boolean {
  const [hostname = '', namespace = '', type = '', ...rest] = text.split('/')
  return rest.length === 0 && findProviderAddress({ hostname, namespace, type }) !== undefined
}
