import { describe, expect, it } from 'vitest'
import { formatPlatform, parsePlatform } from '../../src/protocol/platform.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { createOriginKey } from '../origin/origin-key.ts'
import { createParts, everything, failureOf, gadget, newCall, type TestParts, v1, widget } from './parts-fixture.ts'
import { ScriptedUpstream, sha256 } from './scripted-upstream.ts'

const platform = parsePlatform('linux_amd64')
const bytes = Buffer.from('the same program at two registries')
const digest = sha256(bytes)
const key = await createOriginKey()

/** The widget unsigned, the gadget signed, both of these bytes; every zip is unsafe. */
async function publishBoth(): Promise<{ parts: TestParts; asked: string[]; unsigned: ScriptedUpstream }> {
  const [unsigned, signed, asked] = [new ScriptedUpstream(), new ScriptedUpstream(), [] as string[]]
  await unsigned.publish('1.0.0', { bytes: () => bytes })
  await signed.publish('1.0.0', { bytes: () => bytes, key })
  const findUnsafety = async (path: string) => {
    asked.push(path)
    return 'an entry leaves the folder'
  }
  const upstreamFor = (host: string) => (host === gadget.hostname ? signed : unsigned)
  return { parts: createParts({ upstreamFor, findUnsafety }), asked, unsigned }
}

async function open({ archives }: TestParts, address: typeof widget): Promise<number> {
  await using blob = (await archives.open(everything, { address, version: v1, platform }, newCall())).value
  return blob.size
}

it('an unsigned archive that the disk does not give back is a storage error, and no fault of its publisher', async () => {
  const upstream = new ScriptedUpstream()
  await upstream.publish('1.0.0', { bytes: () => bytes })
  const findUnsafety = () => Promise.reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
  const parts = createParts({ upstreamFor: () => upstream, findUnsafety })
  expect(await failureOf(open(parts, widget))).toMatchObject({ code: 'STORAGE_FAILED' })
})

describe('an unsafe archive', () => {
  it('that nobody signed is refused with the reason, is neither kept nor pinned', async () => {
    const { parts } = await publishBoth()
    const error = await failureOf(open(parts, widget))
    expect(error).toMatchObject({ code: 'ARCHIVE_UNSAFE', fields: { reason: 'an entry leaves the folder' } })
    expect(error.message).toContain('linux_amd64')
    expect(await parts.blobs.stat(digest)).toBeUndefined()
    expect(await parts.catalogue.version(widget, v1)).toMatchObject({ pin: undefined, archives: new Map() })
  })

  it('that is signed is not looked into', async () => {
    const { parts, asked } = await publishBoth()
    expect(await open(parts, gadget)).toBe(bytes.length)
    expect(asked).toEqual([])
  })

  it('that came in signed while the unsigned one was on its way stays held', async () => {
    const { parts, unsigned } = await publishBoth()
    unsigned.beforeArchive = async () => {
      await open(parts, gadget)
    }
    expect(await failureOf(open(parts, widget))).toMatchObject({ code: 'ARCHIVE_UNSAFE' })
    expect(await parts.blobs.stat(digest)).toBeDefined()
    const { archives } = await parts.catalogue.version(widget, v1)
    expect(archives.get(formatPlatform(platform))).toBeUndefined()
  })

  it('that cannot be looked into is not let in', async () => {
    const blobs = new MemoryBlobStore()
    blobs.localFile = async () => undefined
    const parts = createParts({ blobs })
    await parts.upstream.publish('1.0.0')
    expect(await failureOf(open(parts, widget))).toMatchObject({ code: 'STORAGE_FAILED' })
    expect((await parts.catalogue.version(widget, v1)).archives.size).toBe(0)
  })
})
