import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Behaviour } from '../origin/fault.ts'
import { startOrigin, type TestOrigin } from '../origin/origin.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import type { Release } from '../origin/release.ts'
import { startMirror, type TestMirror } from './mirror-fixture.ts'
import { createMirrorWorkspace, errorsLogged, HOST } from './mirror-workspace.ts'
import { askDownload, askVersions, registryArchivePath, registryConfig } from './registry-door.ts'
import { CURRENT_PLATFORM, terraformAvailable } from './terraform-cli.ts'

/* What the client would refuse at the origin, the provider registry door refuses first, and says why. */

let origin: TestOrigin
let mirror: TestMirror
let releases = 0

beforeAll(async () => {
  origin = await startOrigin()
  mirror = await startMirror({ origin })
})
afterAll(async () => {
  await mirror[Symbol.asyncDispose]()
  await origin[Symbol.asyncDispose]()
})

interface Wrong {
  /** Publishes a provider under this name; returns what the origin does then instead of being honest. */
  readonly publish: (provider: string) => Promise<(() => void) | undefined>
  readonly code: string
  /** Of the message in the body and in the log. */
  readonly words: RegExp
}

async function publishAnd(provider: string, fault: (release: Release) => [kind: 'sums' | 'signature', Behaviour]) {
  const release = await origin.publish({ provider, version: '1.0.0' })
  return () => void origin.fault({ kind: fault(release)[0], provider }, fault(release)[1])
}

const rows: [string, Wrong][] = [
  [
    'a key that did not sign',
    {
      async publish(provider) {
        await origin.publish({ provider, version: '1.0.0', listedKeys: [await createOriginKey()] })
        return undefined
      },
      code: 'SIGNATURE_INVALID',
      words: /signature of .* is not valid: no readable key has id/,
    },
  ],
  [
    'altered sums',
    {
      publish: (provider) =>
        publishAnd(provider, ({ sums }) => ['sums', { body: sums.toString().replace(/^../, '00') }]),
      code: 'SIGNATURE_INVALID',
      words: /signature/,
    },
  ],
  [
    'sums with CRLF added',
    {
      publish: (provider) =>
        publishAnd(provider, ({ sums }) => ['sums', { body: sums.toString().replaceAll('\n', '\r\n') }]),
      code: 'SIGNATURE_INVALID',
      words: /signature/,
    },
  ],
  [
    'documents of one generation and sums of another',
    {
      async publish(provider) {
        const old = await origin.publish({ provider, version: '1.0.0' })
        await origin.publish({ provider, version: '1.0.0' })
        return () => {
          origin.fault({ kind: 'sums', provider }, { body: old.sums })
          origin.fault({ kind: 'signature', provider }, { body: old.signature ?? '' })
        }
      },
      code: 'CHECKSUM_MISMATCH',
      words: /two digests of .*[0-9a-f]{64}.*[0-9a-f]{64}/,
    },
  ],
  [
    'no keys',
    {
      async publish(provider) {
        await origin.publish({ provider, version: '1.0.0', listedKeys: [] })
        return undefined
      },
      code: 'SIGNATURE_REQUIRED',
      words: /lists no signing key .* set verification\.signatures: whenListed/,
    },
  ],
]

describe('a release that does not verify is refused by us, before the client could judge it', () => {
  // At one time, since most of each is waiting: what may be two generations mixed is looked at again.
  test.concurrent.each(rows)(
    '%s: 502 with the cause, in the log too, and no archive is asked for',
    async (_, { publish, ...wrong }) => {
      const provider = `acme/wrong-${++releases}`
      const misbehave = await publish(provider)
      misbehave?.()
      expect((await askVersions(mirror, provider)).status).toBe(200)
      const answers = [
        await askDownload(mirror, provider, '1.0.0', CURRENT_PLATFORM),
        await mirror.ask(registryArchivePath(provider, '1.0.0', CURRENT_PLATFORM)),
      ]
      for (const answer of answers) {
        expect([answer.status, answer.json().code]).toEqual([502, wrong.code])
        expect(answer.json().error).toMatch(wrong.words)
        const line = `${wrong.code}: ${answer.json().error}`
        await vi.waitFor(() => expect(errorsLogged(mirror)).toContain(line), 15_000)
      }
      expect(origin.count(`archive ${provider}`)).toBe(0)

      if (terraformAvailable() === undefined) return
      await using terraform = await createMirrorWorkspace(mirror, {
        providers: { wrong: { source: `${HOST}/${provider}` } },
        cliConfig: registryConfig(mirror.url),
      })
      const run = await terraform.run(['init'])
      expect(run.code).toBe(1)
      expect(run.output).toContain(`Failed to install provider`)
      expect(run.output).toContain('502 Bad Gateway')
      expect(await terraform.installed()).toEqual([])
      expect(await terraform.lockFile()).toBe('')
    },
  )
})
