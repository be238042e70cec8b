import 'reflect-metadata'
import { ExtendedKeyUsage } from '@peculiar/x509'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOddAuthority, type OddCertificate, type Oddity, rsa } from './odd-certificates.ts'
import { createPatient, type Findings, freePort, type More } from './patient.ts'

const NAME = 'mirror.example.test'

let origin: TestOrigin
let authority: OddCertificate

beforeAll(async () => {
  origin = await startOrigin()
  authority = await createOddAuthority()
})
afterAll(() => origin[Symbol.asyncDispose]())

/** Examines a mirror with certificate files, on a machine that trusts `root`. */
async function examineFiles(
  files: { cert: string; key: string },
  root: string | undefined,
  more: More = {},
): Promise<Findings> {
  const tls = { certFile: './tls.crt', keyFile: './tls.key' }
  await using patient = await createPatient(origin, {
    ...{ listen: { port: await freePort(), tls }, publicUrl: `https://${NAME}/`, mode: 'sealed' },
    ...more,
  })
  await patient.write('tls.crt', files.cert)
  await patient.write('tls.key', files.key)
  const env = root === undefined ? {} : { SSL_CERT_FILE: await patient.write('roots.pem', root) }
  return await patient.examine({ env })
}

async function examineOdd(oddity: Oddity): Promise<Findings> {
  const { pem, keyPem } = await authority.issue(oddity)
  return examineFiles({ cert: pem, key: keyPem }, authority.pem)
}

describe('a certificate of files, as a Go client sees it', () => {
  test('that is well', async () => {
    const findings = await examineOdd({})
    expect(findings.about('ok certificate')).not.toBe('')
  })

  test('that has a star for the name', async () => {
    expect((await examineOdd({ names: ['*.example.test'] })).about('ok certificate')).not.toBe('')
  })

  const cases: readonly [string, Oddity, RegExp][] = [
    [
      'without subject alternative names',
      { names: [] },
      /problem certificate: .*no subject alternative names; Go does not look at its common name \(mirror\.example\.test\).*issued again/,
    ],
    [
      'for another name',
      { names: ['other.example.test'] },
      /problem certificate: .*for other\.example\.test, and clients use mirror\.example\.test.*issued again/,
    ],
    ['with a star for two labels', { names: ['*.test'] }, /problem certificate: .*for \*\.test, and clients use/],
    ['that has expired', { days: { from: -90, to: -1 } }, /problem certificate: .* expired on .*Renew it/],
    ['that is not valid yet', { days: { from: 1, to: 90 } }, /problem certificate: .*not valid before.*good clock/],
    ['that expires soon', { days: { from: -1, to: 5 } }, /warning certificate: .* expires in [45] days/],
    [
      'for clients',
      { usage: ExtendedKeyUsage.clientAuth },
      /problem certificate: .*may not be used for servers.*serverAuth/,
    ],
    ['with an RSA key of 1024 bits', { key: rsa(1024) }, /warning certificate: .*only 1024 bits.*2048/],
    ['with an RSA key of 768 bits', { key: rsa(768) }, /problem certificate: .*768 bits, which Go refuses/],
  ]
  test.each(cases)('%s', async (_, oddity, expected) => {
    expect((await examineOdd(oddity)).complaints.join('\n')).toMatch(expected)
  })

  test('that is signed with SHA-1', async () => {
    const old = await createOddAuthority(rsa(2048, 'SHA-1'))
    const { pem, keyPem } = await old.issue({})
    const findings = await examineFiles({ cert: pem, key: keyPem }, old.pem)
    expect(findings.about('problem certificate')).toMatch(/signed with .*sha1.*, which Go refuses.*SHA-256/i)
  })

  test('without the intermediate authority that issued it', async () => {
    const intermediate = await authority.issue({ isAuthority: true, names: [] })
    const { pem, keyPem } = await intermediate.issue({})
    const alone = await examineFiles({ cert: pem, key: keyPem }, authority.pem)
    expect(alone.about('problem certificate')).toMatch(
      /chain is not complete: CN=Odd authority.*append its certificate/,
    )
    const whole = await examineFiles({ cert: pem + intermediate.pem, key: keyPem }, authority.pem)
    expect(whole.about('ok certificate')).not.toBe('')
  })

  test('of an authority that nobody trusts', async () => {
    const { pem, keyPem } = await authority.issue({})
    const findings = await examineFiles({ cert: pem + authority.pem, key: keyPem }, undefined)
    expect(findings.about('warning certificate')).toMatch(
      /CN=Odd authority.* is not trusted.*Give that authority to every client/,
    )
  })

  test('with the key of another one', async () => {
    const [{ pem }, { keyPem }] = [await authority.issue({}), await authority.issue({})]
    const findings = await examineFiles({ cert: pem, key: keyPem }, authority.pem)
    expect(findings.about('problem certificate')).toMatch(
      /tls\.key does not belong to the first certificate.*Mend or replace/,
    )
  })

  test('with an authority for clients that cannot be read', async () => {
    const { pem, keyPem } = await authority.issue({})
    const tls = { certFile: './tls.crt', keyFile: './tls.key', clientCaFile: './none.pem' }
    const findings = await examineFiles({ cert: pem, key: keyPem }, authority.pem, {
      listen: { port: await freePort(), tls },
    })
    expect(findings.about('problem certificate')).toMatch(/none\.pem cannot be read \(ENOENT\)/)
  })
})

describe('the certificate that the mirror makes itself', () => {
  const sealed = { mode: 'sealed' }

  test('lacks the name that clients use', async () => {
    await using patient = await createPatient(origin, sealed)
    const findings = await patient.examine({ baseUrl: new URL('https://mirror.corp.example/') })
    expect(findings.about('problem certificate')).toMatch(
      /clients use mirror\.corp\.example.*names: \[mirror\.corp\.example\]/,
    )
  })

  test('is of an authority that may not sign for a new name', async () => {
    const { createCertificateAuthority } = await import('../../src/tls/certificate-authority.ts')
    const { issueServerCertificate } = await import('../../src/tls/server-certificate.ts')
    const names = ['localhost', '127.0.0.1', '::1']
    const made = await createCertificateAuthority(names, new Date())
    const pair = await issueServerCertificate(made.authority, names, new Date())
    await using patient = await createPatient(origin, { ...sealed, publicUrl: 'https://mirror.corp.example/' })
    await patient.write('data/state/tls/ca.pem', made.authority.certificate.toString(), 0o644)
    await patient.write('data/state/tls/server.pem', pair.certificate, 0o644)
    const findings = await patient.examine()
    expect(findings.about('warning certificate')).toMatch(
      /may not sign for mirror\.corp\.example: the next start makes a NEW authority.*ca\.pem/,
    )
  })

  test('has names that its authority may not sign for, so Go refuses it whole', async () => {
    const { createCertificateAuthority } = await import('../../src/tls/certificate-authority.ts')
    const { issueServerCertificate } = await import('../../src/tls/server-certificate.ts')
    const names = ['localhost', '127.0.0.1', '::1']
    const made = await createCertificateAuthority(names, new Date())
    const pair = await issueServerCertificate(made.authority, [...names, 'evil.example'], new Date())
    await using patient = await createPatient(origin, sealed)
    await patient.write('data/state/tls/ca.pem', made.authority.certificate.toString(), 0o644)
    await patient.write('data/state/tls/server.pem', pair.certificate, 0o644)
    expect((await patient.examine()).about('problem certificate')).toMatch(
      /may not sign for evil\.example \(its name constraints\)/,
    )
  })

  test('is off without any address of a TLS front', async () => {
    await using patient = await createPatient(origin, { ...sealed, listen: { port: await freePort(), tls: 'off' } })
    expect((await patient.examine()).about('warning certificate')).toMatch(
      /listen\.tls is off, and clients refuse.*TLS front/,
    )
  })
})
