import { X509Certificate } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Where Go looks on Linux: the first of the files that is there, and all certificates in the folders. */
const FILES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
const FOLDERS = ['/etc/ssl/certs', '/etc/pki/tls/certs']
const MAX_FILES = 2_000
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** What a Go program trusts here, and what is wrong with `SSL_CERT_FILE`, if anything is. */
export interface GoRoots {
  readonly certificates: readonly X509Certificate[]
  readonly problem: string | undefined
}

/**
 * The certificates that Terraform and OpenTofu trust on this machine with this environment: `SSL_CERT_FILE` stands in
 * for the system's file, `SSL_CERT_DIR` (several, with colons) for its folders.
 */
export async function readGoRoots(env: NodeJS.ProcessEnv): Promise<GoRoots> {
  const given = env.SSL_CERT_FILE
  const texts: string[] = []
  let problem: string | undefined
  for (const file of given ? [given] : FILES) {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    if (text === undefined) continue
    texts.push(text)
    break
  }
  if (given && texts.length === 0) problem = `SSL_CERT_FILE names ${given}, which cannot be read`
  else if (given && parseCertificates(texts[0] ?? '').length === 0)
    problem = `SSL_CERT_FILE names ${given}, which holds no certificate`
  for (const folder of env.SSL_CERT_DIR ? env.SSL_CERT_DIR.split(':') : FOLDERS)
    texts.push(...(await readFolder(folder)))
  const all = texts.flatMap(parseCertificates)
  return { certificates: [...new Map(all.map((each) => [each.fingerprint256, each])).values()], problem }
}

/** All certificates of a PEM text, in order; what is none is left out. */
export function parseCertificates(text: string): X509Certificate[] {
  return (text.match(PEM) ?? []).flatMap((pem) => {
    try {
      return [new X509Certificate(pem)]
    } catch {
      return []
    }
  })
}

async function readFolder(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  // The system's file stands in its folder, too; links by hash repeat what is there.
  const files = names.filter((name) => /\.(pem|crt)$/.test(name) && name !== 'ca-certificates.crt').slice(0, MAX_FILES)
  return Promise.all(files.map((name) => readFile(join(folder, name), 'utf8').catch(() => '')))
}
