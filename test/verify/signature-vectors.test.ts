import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { verifySignature } from '../../src/verify/signature.ts'
import { readSigningKeys } from '../../src/verify/signing-keys.ts'
import { listed, now } from './key-fixture.ts'
import { hasVectors, readVector, vector } from './vectors.ts'

const OLD_AND_NEW_72D7468F = [
  'hashicorp-72D7468F-releaseauth.asc',
  'hashicorp-hc-install.asc',
  'hashicorp-releases-terraform-repo.asc',
  'hashicorp-tenv-testdata.asc',
  'hashicorp-tfenv.asc',
  'opentofu-testing-public-key.asc',
  'terve-hashicorp-72D7468F.asc',
]
/** Copies whose primary key ended on 2026-04-18, before the clock of the checks. */
const OLD_COPIES = ['hashicorp-tfenv.asc', 'opentofu-testing-public-key.asc', 'terve-hashicorp-72D7468F.asc']

/** The verdicts of vectors/README.md section 2, as signature → keys that are good for it. */
const GOOD: Readonly<Record<string, readonly string[]>> = {
  'hc-install-mock/0.14.11/terraform_0.14.11_SHA256SUMS.2FCA0A85.sig': ['hc-install-mock-2FCA0A85.pub.asc'],
  'hc-install-mock/0.14.11/terraform_0.14.11_SHA256SUMS.sig': ['hc-install-mock-2FCA0A85.pub.asc'],
  'hc-install-mock/0.15.0-rc2/terraform_0.15.0-rc2_SHA256SUMS.2FCA0A85.sig': ['hc-install-mock-2FCA0A85.pub.asc'],
  'hc-install-mock/0.15.0-rc2/terraform_0.15.0-rc2_SHA256SUMS.sig': ['hc-install-mock-2FCA0A85.pub.asc'],
  'realistic/placeholder.bad.sig': [],
  'realistic/placeholder.good.sig': ['test-author-37A6AB3BCF2C170A.asc'],
  'sample_0.1.0/sample_0.1.0_SHA256SUMS.sig': ['terraform-sample-200BDA882C95B80A.asc'],
  'terraform-cloudplugin_0.1.0/terraform-cloudplugin_0.1.0_SHA256SUMS.sig': ['terraform-sample-200BDA882C95B80A.asc'],
  'terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS.72D7468F.sig': OLD_AND_NEW_72D7468F,
  'terraform_0.13.1/terraform_0.13.1_SHA256SUMS.348FFC4C.sig': [
    'hashicorp-348FFC4C-from-protocol-docs.asc',
    'terve-hashicorp-348FFC4C.asc',
  ],
  'terraform_0.13.1/terraform_0.13.1_SHA256SUMS.72D7468F.sig': OLD_AND_NEW_72D7468F,
  'terraform_1.3.7/terraform_1.3.7_SHA256SUMS.72D7468F.sig': OLD_AND_NEW_72D7468F,
  'terraform_1.3.7/terraform_1.3.7_SHA256SUMS.sig': OLD_AND_NEW_72D7468F,
  'terraform_1.6.6/terraform_1.6.6_SHA256SUMS.sig': OLD_AND_NEW_72D7468F,
  'tofu_1.6.0-cosign/tofu_1.6.0_SHA256SUMS.sig': [],
}
/** Made by the sub-key that ended on 2022-04-20, whatever the copy of the primary key says. */
const BY_ENDED_SUBKEY = [
  'terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS.72D7468F.sig',
  'terraform_0.13.1/terraform_0.13.1_SHA256SUMS.72D7468F.sig',
]

function signedFile(signature: string): Buffer {
  const path = signature.startsWith('realistic/') ? 'realistic/placeholder.txt' : withoutSuffix(signature)
  return readVector(`signatures/${path}`)
}

function withoutSuffix(signature: string): string {
  return signature.replace(/(\.[0-9A-F]{8})?\.sig$/, '')
}

function keyFile(name: string) {
  return listed(readVector(`signatures/keys/${name}`).toString('latin1'))
}

describe.skipIf(!hasVectors)('real signatures', () => {
  const keys = hasVectors ? readdirSync(vector('signatures/keys')) : []
  const rules = { now, expiredKeys: 'accept' } as const

  it('covers every signature file of the vectors', () => {
    const files = readdirSync(vector('signatures/'), { recursive: true, encoding: 'utf8' })
    expect(files.filter((file) => file.endsWith('.sig')).sort()).toEqual(Object.keys(GOOD).sort())
  })

  it.each(Object.entries(GOOD))('gives the verdict of the README for %s with every key', async (signature, good) => {
    const [data, bytes] = [signedFile(signature), readVector(`signatures/${signature}`)]
    for (const name of keys) {
      const verdict = verifySignature(data, bytes, [keyFile(name)], rules)
      if (!good.includes(name)) {
        await expect(verdict, name).rejects.toMatchObject({ code: 'SIGNATURE_INVALID' })
        continue
      }
      const keyExpired = OLD_COPIES.includes(name) || BY_ENDED_SUBKEY.includes(signature)
      await expect(verdict, name).resolves.toMatchObject({ keyExpired, weak: false })
      await expect(verifySignature(Buffer.from(`${data}\n`), bytes, [keyFile(name)], rules)).rejects.toMatchObject({
        code: 'SIGNATURE_INVALID',
        message: expect.stringContaining('digest did not match'),
      })
    }
  })

  it.each(Object.entries(GOOD))('finds the right key of %s among all keys of the vectors', async (signature, good) => {
    const all = keys.map(keyFile)
    const verdict = verifySignature(signedFile(signature), readVector(`signatures/${signature}`), all, rules)
    if (good.length === 0) await expect(verdict).rejects.toMatchObject({ code: 'SIGNATURE_INVALID' })
    else await expect(verdict).resolves.toMatchObject({ keyExpired: BY_ENDED_SUBKEY.includes(signature) })
  })

  it('reports the signer by its primary key', async () => {
    const path = 'terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS'
    const bytes = readVector(`signatures/${path}.72D7468F.sig`)
    const key = keyFile('hashicorp-releases-terraform-repo.asc')
    expect(await verifySignature(readVector(`signatures/${path}`), bytes, [key], rules)).toEqual({
      keyId: '34365D9472D7468F',
      fingerprint: 'c874011f0ab405110d02105534365d9472d7468f',
      userId: 'HashiCorp Security (hashicorp.com/security) <security@hashicorp.com>',
      signedAt: '2021-04-22T17:16:54.000Z',
      keyExpired: true,
      weak: false,
    })
  })

  it('refuses a key that has expired since only where told so', async () => {
    const path = 'terraform-provider-null_3.1.0/terraform-provider-null_3.1.0_SHA256SUMS'
    const bytes = readVector(`signatures/${path}.72D7468F.sig`)
    const key = keyFile('hashicorp-releases-terraform-repo.asc')
    const strict = { now, expiredKeys: 'refuse' } as const
    await expect(verifySignature(readVector(`signatures/${path}`), bytes, [key], strict)).rejects.toMatchObject({
      code: 'SIGNATURE_INVALID',
      message: expect.stringMatching(/34365D9472D7468F: the key expired on 2022-04-20.*refused here/),
    })
  })

  it('reads every key of the registry and of the signatures', async () => {
    const names = readdirSync(vector('opentofu-registry/keys/'), { recursive: true, encoding: 'utf8' })
    const files = names.filter((name) => name.endsWith('.asc'))
    expect(files).toHaveLength(66)
    for (const file of files) {
      const { readable, unreadable } = await readSigningKeys([
        listed(readVector(`opentofu-registry/keys/${file}`).toString()),
      ])
      expect(unreadable, file).toEqual([])
      expect(readable.length, file).toBeGreaterThan(0)
    }
    expect((await readSigningKeys(keys.map(keyFile))).unreadable).toEqual([])
  })
})
