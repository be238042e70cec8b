import { CURRENT_PLATFORM } from '../test/e2e/terraform-cli.ts'
import { startOrigin } from '../test/origin/origin.ts'
import { createOriginKey } from '../test/origin/origin-key.ts'
import type { RequestKind } from '../test/origin/origin-request.ts'

/*
 * The origin registry of the demo, as a process that the demo leads by messages: it publishes two providers, each
 * signed by a key of its own, and says what it was asked. It ends when the demo does.
 */

/** What the origin says once it serves. */
export interface OriginFacts {
  /** `127.0.0.1:PORT`. */
  readonly address: string
  readonly host: string
  readonly caPem: string
  readonly published: readonly PublishedFacts[]
}

/** One version, as the origin published it. */
export interface PublishedFacts {
  readonly provider: string
  readonly version: string
  readonly platforms: readonly string[]
  readonly keyId: string
}

/** One request that the origin was sent. */
export interface SeenRequest {
  readonly kind: RequestKind
  readonly provider?: string
  readonly version?: string
  readonly platform?: string
  readonly status?: number
}

/** What the demo may ask of the origin: its requests so far, or a new version whose archives it then falsifies. */
export type OriginOrder = 'requests' | 'tamper'

const HOST = 'registry.example.test'
/** Of the two platforms of the second provider, the one that is not this machine's. */
const OTHER_PLATFORM = CURRENT_PLATFORM === 'darwin_arm64' ? 'linux_amd64' : 'darwin_arm64'
/** Of the second provider's program: large enough that its size is worth a word. */
const GADGET_BYTES = 6_000_000

const origin = await startOrigin({ hosts: [HOST] })
const gadgetKey = await createOriginKey({ userId: 'Gadget Works <release@gadget.example>' })
const widget = { provider: 'acme/widget', key: origin.key, platforms: platformsOf('linux_arm64', 'windows_amd64') }
const gadget = { provider: 'acme/gadget', key: gadgetKey, platforms: platformsOf() }

process.on('message', ({ id, order }: { id: number; order: OriginOrder }) => {
  void obey(order).then((result) => process.send?.({ id, result }))
})
process.once('disconnect', () => void origin[Symbol.asyncDispose]())

const published = [await publish(widget, '1.0.0'), await publish({ ...gadget, archiveBytes: GADGET_BYTES }, '0.3.0')]
process.send?.({ address: origin.address, host: HOST, caPem: origin.caPem, published } satisfies OriginFacts)

function platformsOf(...more: string[]): string[] {
  return [...new Set([CURRENT_PLATFORM, OTHER_PLATFORM, ...more])]
}

async function publish(what: typeof widget & { archiveBytes?: number }, version: string): Promise<PublishedFacts> {
  const release = await origin.publish({ ...what, version })
  const platforms = release.packages.map(({ platform }) => platform)
  return { provider: what.provider, version, platforms, keyId: what.key.keyId }
}

async function obey(order: OriginOrder): Promise<PublishedFacts | SeenRequest[]> {
  if (order === 'tamper') {
    const facts = await publish(widget, '1.1.0')
    origin.fault({ kind: 'archive', provider: facts.provider, version: facts.version }, { wrongBytes: true })
    return facts
  }
  return origin.requests.map(({ kind, provider, version, platform, status }) => ({
    kind,
    ...(provider === undefined ? {} : { provider }),
    ...(version === undefined ? {} : { version }),
    ...(platform === undefined ? {} : { platform }),
    ...(status === undefined ? {} : { status }),
  }))
}
