import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import tls from 'node:tls'
import { MirrorError } from '../errors.ts'
import type { Log } from '../log.ts'

/** The operator's own certificate, as PEM files. */
export interface CertificateFilesOptions {
  /** The chain, the server's certificate first. */
  readonly certFile: string
  /** Its key, without a password. */
  readonly keyFile: string
  /** If given, clients must show a certificate of one of these authorities. */
  readonly clientCaFile?: string
  readonly log: Log
  readonly pollIntervalMs: number
}

interface Content {
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
}

/** What a look at the files gave. Equal fingerprints are equal content. */
type Look = { readonly fingerprint: string } & ({ readonly content: Content } | { readonly problem: string })

/**
 * A certificate from files that are read again when they change. It looks at their content every so often: that also
 * sees the swapped symbolic links of Kubernetes and works on every file system. What does not fit together, such as a
 * pair of which only one half is written yet, leaves the old one in place.
 */
export class CertificateFiles implements AsyncDisposable {
  readonly #options: CertificateFilesOptions
  readonly #listeners: (() => void)[] = []
  #content: Content
  #fingerprint: string
  #rejected: { readonly fingerprint: string; told: boolean } | undefined
  #timer: NodeJS.Timeout | undefined
  #poll: Promise<void> | undefined

  private constructor(options: CertificateFilesOptions, content: Content, fingerprint: string) {
    this.#options = options
    this.#content = content
    this.#fingerprint = fingerprint
  }

  /** Reads the files; the caller disposes. @throws MirrorError `CONFIGURATION` if they cannot be used */
  static async open(options: CertificateFilesOptions): Promise<CertificateFiles> {
    const look = await lookAt(options)
    if ('problem' in look) throw new MirrorError('CONFIGURATION', `listen.tls: ${look.problem}`, { key: 'listen.tls' })
    const opened = new CertificateFiles(options, look.content, look.fingerprint)
    opened.#warnOfExpiry()
    opened.#timer = setInterval(() => opened.#pollAgain(), options.pollIntervalMs).unref()
    return opened
  }

  /** For `https.createServer` and `setSecureContext`. */
  secureContext(): tls.SecureContextOptions & { requestCert?: boolean; rejectUnauthorized?: boolean } {
    const { cert, key, ca } = this.#content
    const clients = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true }
    return { cert, key, minVersion: 'TLSv1.2', ...clients }
  }

  /** The chain that the server shows, its own certificate first. */
  certificatePem(): string {
    return this.#content.cert
  }

  /** Calls back after each change that was taken over. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#listeners.length = 0
    await this.#poll
  }

  #pollAgain(): void {
    this.#poll ??= this.#lookAgain().finally(() => {
      this.#poll = undefined
    })
  }

  async #lookAgain(): Promise<void> {
    const look = await lookAt(this.#options)
    if ('problem' in look) {
      this.#reject(look.fingerprint, look.problem)
      return
    }
    this.#rejected = undefined
    if (look.fingerprint === this.#fingerprint) return
    this.#content = look.content
    this.#fingerprint = look.fingerprint
    this.#options.log.info(
      { certFile: this.#options.certFile },
      'the TLS certificate has changed and is used from now on',
    )
    this.#warnOfExpiry()
    for (const listener of this.#listeners) listener()
  }

  /** Told once for each content, and at the second look only: by then a pair that was being written is whole. */
  #reject(fingerprint: string, problem: string): void {
    if (this.#rejected?.fingerprint !== fingerprint) {
      this.#rejected = { fingerprint, told: false }
      return
    }
    if (this.#rejected.told) return
    this.#rejected.told = true
    this.#options.log.warn(`the TLS certificate has changed, but cannot be used; the old one is used on: ${problem}`)
  }

  #warnOfExpiry(): void {
    const { validTo } = new X509Certificate(this.#content.cert)
    if (Date.parse(validTo) > Date.now()) return
    this.#options.log.warn(`${this.#options.certFile}: the certificate expired on ${validTo}; clients refuse it`)
  }
}

async function lookAt({ certFile, keyFile, clientCaFile }: CertificateFilesOptions): Promise<Look> {
  const cert = await readText(certFile)
  const key = await readText(keyFile)
  const ca = clientCaFile === undefined ? { text: undefined } : await readText(clientCaFile)
  const fingerprint = JSON.stringify([cert, key, ca])
  for (const file of [cert, key, ca]) if ('problem' in file) return { fingerprint, problem: file.problem }
  const content = { cert: cert.text ?? '', key: key.text ?? '', ca: ca.text }
  const problem = findPairProblem(content, { certFile, keyFile }) ?? findClientCaProblem(content.ca, clientCaFile ?? '')
  return problem === undefined ? { fingerprint, content } : { fingerprint, problem }
}

type Read = { readonly text: string | undefined } | { readonly text?: never; readonly problem: string }

async function readText(file: string): Promise<Read> {
  try {
    return { text: await readFile(file, 'utf8') }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    return { problem: `${file} cannot be read (${code})` }
  }
}

function findPairProblem({ cert, key }: Content, files: { certFile: string; keyFile: string }): string | undefined {
  const leaf = attempt(() => new X509Certificate(cert))
  if (leaf === undefined) return `${files.certFile} is not a certificate in PEM`
  const privateKey = attempt(() => createPrivateKey(key))
  if (privateKey === undefined) return `${files.keyFile} is not a private key in PEM, or it has a password`
  if (!leaf.checkPrivateKey(privateKey)) {
    return `${files.keyFile} does not belong to the first certificate of ${files.certFile}`
  }
  const context = attempt(() => tls.createSecureContext({ cert, key, minVersion: 'TLSv1.2' }))
  return context === undefined ? `${files.certFile} and ${files.keyFile} cannot be used for TLS` : undefined
}

/** OpenSSL skips what is no certificate in a list of authorities, so an empty list would pass. */
function findClientCaProblem(ca: string | undefined, file: string): string | undefined {
  if (ca === undefined) return undefined
  const blocks = ca.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  const isValid = blocks.length > 0 && blocks.every((block) => attempt(() => new X509Certificate(block)) !== undefined)
  return isValid ? undefined : `${file} is not a list of certificates in PEM`
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
