import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startMirror, type TestMirror } from '../e2e/mirror-fixture.ts'
import { CURRENT_PLATFORM, createWorkspace, hostConfig, terraformAvailable } from '../e2e/terraform-cli.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { hasGpg, openGpg } from './gpg-fixture.ts'
import type { SignatureCase } from './signature-case.ts'
import { keyFormCases, realKeyCases, severalCases, signatureFormCases } from './signature-form-cases.ts'
import { algorithmCases, gpgCases, revocationCases, timeCases } from './signature-key-cases.ts'

const HOST = 'registry.example.test'
const gpg = hasGpg ? await openGpg() : undefined
const groups: [string, SignatureCase[]][] = [
  ['algorithms', [...(await algorithmCases()), ...(gpg === undefined ? [] : gpgCases(gpg))]],
  ['revocations', await revocationCases()],
  ['times and sub-keys', await timeCases()],
  ['several keys and signatures', await severalCases()],
  ['forms of a signature', await signatureFormCases()],
  ['forms of a key', await keyFormCases()],
  ['real keys', await realKeyCases()],
]
const cases = groups.flatMap(([, each]) => each)

function weAccept({ client, weDifferBecause }: SignatureCase): boolean {
  return (client === 'accepts') === (weDifferBecause === undefined)
}

function titleOf(each: SignatureCase): string {
  const verdict = `the client ${each.client} ${each.name}`
  if (each.weDifferBecause === undefined) return `${verdict}, and so do we`
  return `${verdict}; we ${weAccept(each) ? 'accept' : 'refuse'}, because ${each.weDifferBecause}`
}

function providerOf(each: SignatureCase): string {
  return `case-${cases.indexOf(each)}`
}

describe.skipIf(terraformAvailable() === undefined)('a signature as the real terraform judges it at the origin', () => {
  let origin: TestOrigin
  let mirror: TestMirror
  let installed: readonly string[]
  let output: string

  beforeAll(async () => {
    origin = await startOrigin()
    for (const each of cases) {
      const { signers, listed: listedKeys = signers } = each
      const platforms = [CURRENT_PLATFORM]
      const release = { version: '1.0.0', platforms, key: signers, listedKeys }
      await origin.publish({ provider: `acme/${providerOf(each)}`, ...release })
    }
    // One run for all: a provider that is refused does not stop the others.
    await using terraform = await createWorkspace({
      providers: Object.fromEntries(
        cases.map((each) => [providerOf(each), { source: `${HOST}/acme/${providerOf(each)}` }]),
      ),
      cliConfig: hostConfig(HOST, origin.services()),
      caPem: origin.caPem,
    })
    output = (await terraform.run(['init'])).output
    installed = await terraform.installed()
    mirror = await startMirror({ origin })
  }, 180_000)

  afterAll(async () => {
    await mirror?.[Symbol.asyncDispose]()
    await origin?.[Symbol.asyncDispose]()
    await gpg?.[Symbol.asyncDispose]()
  })

  function expectClient(each: SignatureCase): void {
    const address = `${HOST}/acme/${providerOf(each)}`
    const refused = output.includes(`Error while installing ${address} v1.0.0: `)
    expect([refused, installed.includes(`${address}/1.0.0/${CURRENT_PLATFORM}`)], output).toEqual(
      each.client === 'accepts' ? [false, true] : [true, false],
    )
  }

  describe.each(groups)('%s', (_, group) => {
    it.each(group.map((each) => [titleOf(each), each] as const))('%s', async (_title, each) => {
      expectClient(each)
      const answer = await mirror.version(`acme/${providerOf(each)}`, '1.0.0')
      if (!weAccept(each)) {
        expect([answer.status, answer.json().code]).toEqual([502, each.code ?? 'SIGNATURE_INVALID'])
        return
      }
      expect([answer.status, answer.body.toString()]).toEqual([200, expect.stringContaining('zh:')])
      const isWeak = mirror.logLines.some(({ msg }) => {
        const text = String(msg)
        return text.startsWith('weak signature') && text.includes(`/acme/${providerOf(each)}/`)
      })
      expect(isWeak).toBe(each.weak === true)
    })
  })
})
