import { hostname } from 'node:os'
import { join } from 'node:path'
import type { SecureContextOptions } from 'node:tls'
import type { Log } from '../log.ts'
import { AutomaticCertificate } from './automatic-certificate.ts'
import { CertificateFiles } from './certificate-files.ts'
import { listConfiguredNames, parseMachineName } from './certificate-names.ts'
import { PrivateFolder } from './private-folder.ts'

const DAILY_MS = 86_400_000
const POLL_MS = 2000

/** `listen.tls` of the configuration. */
export type TlsSettings =
  | 'auto'
  | 'off'
  | { readonly auto: true; readonly names: readonly string[] }
  | { readonly certFile: string; readonly keyFile: string; readonly clientCaFile?: string }

/** What the server's identity is made from. */
export interface TlsIdentityOptions {
  readonly tls: TlsSettings
  /** Keys of `auto` are kept in `tls` below it. */
  readonly stateDir: string
  readonly listenHost: string
  readonly publicUrl?: string
  readonly log: Log
  /** Default: `os.hostname()`. */
  readonly machineName?: string
  /** Default: the clock. */
  readonly now?: () => Date
  /** How often `auto` looks whether it must renew; default once a day. */
  readonly checkIntervalMs?: number
  /** How often own files are looked at; default every 2 seconds. */
  readonly pollIntervalMs?: number
}

/** The certificate that the server shows, current at every moment. Dispose it after the server is closed. */
export interface TlsIdentity extends AsyncDisposable {
  /** For `https.createServer`, and for `setSecureContext` on every change. TLS 1.2 at least. */
  secureContext(): SecureContextOptions & { requestCert?: boolean; rejectUnauthorized?: boolean }
  /** Calls back after each change of the certificate. Connections that are open stay open. */
  onChange(listener: () => void): void
  /** The certificate that the server shows (PEM), with its chain where there is one; current as above. */
  certificatePem(): string
  /** The certificate that clients must trust (PEM, and nothing else in it), where it is our own; current as above. */
  authorityPem?(): string
  /** The file with it. */
  readonly caFile?: string
  /** The same, with the public roots. */
  readonly caBundleFile?: string
}

/**
 * Opens the server's TLS identity; undefined for `off`. The caller disposes.
 * @throws MirrorError `CONFIGURATION` for files that cannot be used, `STORAGE_FULL`, `STORAGE_FAILED`
 */
export async function openTlsIdentity(options: TlsIdentityOptions): Promise<TlsIdentity | undefined> {
  const { tls, log } = options
  if (tls === 'off') return undefined
  if (typeof tls === 'object' && 'certFile' in tls) {
    return CertificateFiles.open({ ...tls, log, pollIntervalMs: options.pollIntervalMs ?? POLL_MS })
  }
  const names = tls === 'auto' ? [] : tls.names
  return AutomaticCertificate.open({
    folder: new PrivateFolder(join(options.stateDir, 'tls')),
    names: listConfiguredNames({ ...options, names }),
    machineName: parseMachineName(options.machineName ?? hostname()),
    log,
    now: options.now ?? (() => new Date()),
    checkIntervalMs: options.checkIntervalMs ?? DAILY_MS,
  })
}
