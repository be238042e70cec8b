import tls from 'node:tls'
import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'
import {
  type CertificateAuthority,
  createCertificateAuthority,
  mayIssueFor,
  parseCertificateAuthority,
} from './certificate-authority.ts'
import type { PrivateFolder } from './private-folder.ts'
import { findRenewalReason, issueServerCertificate, type KeyPair, RENEWAL_MS } from './server-certificate.ts'

/** What the automatic certificate needs to know. */
export interface AutomaticCertificateOptions {
  readonly folder: PrivateFolder
  /** The names that must be in the certificate. */
  readonly names: readonly string[]
  /** The machine's name, in the certificate only as far as the authority permits it. */
  readonly machineName: string | undefined
  readonly log: Log
  readonly now: () => Date
  /** How often it is looked whether something must be renewed. */
  readonly checkIntervalMs: number
}

/** The system's roots may have changed since the last run. Reading them takes 40 ms, so not while the server starts. */
const FIRST_CHECK_MS = 5000

const AUTHORITY = 'ca.pem'
const AUTHORITY_KEY = 'ca-key.pem'
const BUNDLE = 'ca-bundle.pem'
const SERVER = 'server.pem'
const SERVER_KEY = 'server-key.pem'

/**
 * A server certificate under a private authority of our own, both kept in a folder and renewed in time. The authority
 * stays as long as it can, because clients trust it: it is replaced only when it is about to expire, or when it may not
 * sign for a name that the configuration gives.
 */
export class AutomaticCertificate implements AsyncDisposable {
  readonly caFile: string
  readonly caBundleFile: string
  readonly #options: AutomaticCertificateOptions
  readonly #listeners: (() => void)[] = []
  #current: KeyPair = { certificate: '', key: '' }
  #authorityPem = ''
  #toldMachineName = false
  #timer: NodeJS.Timeout | undefined
  #firstCheck: NodeJS.Timeout | undefined
  #check: Promise<void> | undefined

  private constructor(options: AutomaticCertificateOptions) {
    this.#options = options
    this.caFile = options.folder.file(AUTHORITY)
    this.caBundleFile = options.folder.file(BUNDLE)
  }

  /**
   * Makes or renews what is needed. The caller disposes.
   * @throws MirrorError `CONFIGURATION` if the authority's files are damaged, `STORAGE_FULL`, `STORAGE_FAILED`
   */
  static async open(options: AutomaticCertificateOptions): Promise<AutomaticCertificate> {
    const opened = new AutomaticCertificate(options)
    await options.folder.prepare()
    const authority = await opened.#renew()
    const bundle = await options.folder.read(BUNDLE)
    if (bundle?.includes(authority.certificate.toString()) !== true) await opened.#writeBundle(authority)
    opened.#timer = setInterval(() => opened.#checkAgain(), options.checkIntervalMs).unref()
    opened.#firstCheck = setTimeout(() => opened.#checkAgain(), FIRST_CHECK_MS).unref()
    return opened
  }

  /** For `https.createServer` and `setSecureContext`. */
  secureContext(): tls.SecureContextOptions {
    return { cert: this.#current.certificate, key: this.#current.key, minVersion: 'TLSv1.2' }
  }

  /** The certificate that the server shows. */
  certificatePem(): string {
    return this.#current.certificate
  }

  /** The certificate of the authority, for clients to trust. */
  authorityPem(): string {
    return this.#authorityPem
  }

  /** Calls back after each renewal. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    clearTimeout(this.#firstCheck)
    this.#listeners.length = 0
    await this.#check
  }

  #checkAgain(): void {
    this.#check ??= this.#renew()
      .then((authority) => this.#writeBundle(authority))
      .catch((error: unknown) => {
        this.#options.log.error({ err: error }, 'the TLS certificate could not be checked; the old one is used on')
      })
      .finally(() => {
        this.#check = undefined
      })
  }

  async #renew(): Promise<CertificateAuthority> {
    const now = this.#options.now()
    const authority = await this.#ensureAuthority(now)
    const pair = await this.#ensureServerCertificate(authority, now)
    this.#authorityPem = authority.certificate.toString()
    if (pair.certificate !== this.#current.certificate) {
      this.#current = pair
      for (const listener of this.#listeners) listener()
    }
    return authority
  }

  async #writeBundle(authority: CertificateAuthority): Promise<void> {
    await this.#options.folder.write(BUNDLE, createBundle(authority.certificate.toString()), 0o644)
  }

  async #ensureAuthority(now: Date): Promise<CertificateAuthority> {
    const { folder, log } = this.#options
    const held = await readAuthority(folder)
    const reason = held && this.#findReplacementReason(held, now)
    if (held !== undefined && reason === undefined) {
      await folder.write(AUTHORITY, held.certificate.toString(), 0o644)
      return held
    }
    if (held !== undefined) await keepOld(folder, held)
    const authority = await this.#createAuthority(now)
    if (reason === undefined) {
      log.info({ caFile: this.caFile }, `made a private certificate authority; clients must trust ${this.caFile}`)
    } else {
      const message = `made a NEW private certificate authority, because the old one ${reason}; every client must be given ${this.caFile} again, until then they refuse to connect`
      log.warn({ caFile: this.caFile }, message)
    }
    return authority
  }

  async #createAuthority(now: Date): Promise<CertificateAuthority> {
    const { folder, names, machineName } = this.#options
    const permitted = machineName === undefined ? names : [...new Set([...names, machineName])]
    const { authority, keyPem } = await createCertificateAuthority(permitted, now)
    await folder.write(AUTHORITY_KEY, keyPem, 0o600)
    await folder.write(AUTHORITY, authority.certificate.toString(), 0o644)
    return authority
  }

  #findReplacementReason(authority: CertificateAuthority, now: Date): string | undefined {
    const { validToDate } = authority.certificate
    if (validToDate.getTime() - now.getTime() < RENEWAL_MS)
      return `expires on ${validToDate.toISOString().slice(0, 10)}`
    const refused = this.#options.names.filter((name) => !mayIssueFor(authority, name))
    return refused.length === 0 ? undefined : `may not sign for ${refused.join(', ')}`
  }

  async #ensureServerCertificate(authority: CertificateAuthority, now: Date): Promise<KeyPair> {
    const { folder, log } = this.#options
    const names = this.#listNames(authority)
    const certificate = await folder.read(SERVER)
    const key = await folder.read(SERVER_KEY)
    const held = { ...(certificate && { certificate }), ...(key && { key }) }
    const reason = await findRenewalReason(held, { authority, names, now })
    if (reason === undefined && certificate !== undefined && key !== undefined) {
      await folder.write(SERVER_KEY, key, 0o600)
      return { certificate, key }
    }
    const issued = await issueServerCertificate(authority, names, now)
    await folder.write(SERVER_KEY, issued.key, 0o600)
    await folder.write(SERVER, issued.certificate, 0o644)
    log.info({ names }, `issued a TLS certificate for ${names.join(', ')}, because ${reason}`)
    return issued
  }

  /** Containers get a new machine name at each start; the authority that clients trust outlives them. */
  #listNames(authority: CertificateAuthority): readonly string[] {
    const { names, machineName, log } = this.#options
    if (machineName === undefined || names.includes(machineName)) return names
    if (mayIssueFor(authority, machineName)) return [...names, machineName]
    if (!this.#toldMachineName) {
      const message = `the TLS certificate leaves out this machine's name ${machineName}, for which the private authority may not sign; if clients use it, add it to listen.tls.names`
      log.info({ machineName }, message)
    }
    this.#toldMachineName = true
    return names
  }
}

/** The held authority; undefined if there never was one. */
async function readAuthority(folder: PrivateFolder): Promise<CertificateAuthority | undefined> {
  const keyPem = await folder.read(AUTHORITY_KEY)
  const copyPem = await folder.read(AUTHORITY)
  if (keyPem === undefined && copyPem === undefined) return undefined
  try {
    if (keyPem === undefined) throw new Error('the file is missing')
    const authority = await parseCertificateAuthority(keyPem, keyPem.includes('CERTIFICATE') ? keyPem : (copyPem ?? ''))
    // Rights may have been lost in a copy or a mount.
    await folder.write(AUTHORITY_KEY, keyPem, 0o600)
    return authority
  } catch (error) {
    if (error instanceof MirrorError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    const message = `${folder.file(AUTHORITY_KEY)}: the private certificate authority cannot be used (${reason}). Restore ${AUTHORITY_KEY} and ${AUTHORITY} from a backup, or delete both to make a new authority, which every client must then be given`
    throw new MirrorError('CONFIGURATION', message, { key: 'listen.tls' }, error)
  }
}

async function keepOld(folder: PrivateFolder, authority: CertificateAuthority): Promise<void> {
  await folder.write(`${AUTHORITY_KEY}.old`, (await folder.read(AUTHORITY_KEY)) ?? '', 0o600)
  await folder.write(`${AUTHORITY}.old`, authority.certificate.toString(), 0o644)
}

/** For clients that take one file instead of their own roots (`SSL_CERT_FILE`): the system's roots and ours. */
function createBundle(authorityPem: string): string {
  const system = tls.getCACertificates('system')
  const roots = system.length > 0 ? system : tls.getCACertificates('bundled')
  return [...new Set([...roots, authorityPem].map((pem) => pem.trim()))].map((pem) => `${pem}\n`).join('')
}
