import { parsePlatform } from '../../../src/protocol/platform.ts'
import { CheckedBlobStore } from '../../../src/store/checked-blob-store.ts'
import { openDataFolder } from '../../../src/store/disk/data-folder.ts'
import { createParts, everything, newCall, recordingLog, v1, widget } from '../parts-fixture.ts'
import { ScriptedUpstream } from '../scripted-upstream.ts'
import { createCare } from './care-fixture.ts'

/*
 * A process for `refresh-crash.test.ts`, which kills it: fills the data folder that it is given, tells so, and replaces
 * the release in it.
 */
const [dataDir = ''] = process.argv.slice(2)
const { log } = recordingLog()
const folder = await openDataFolder({ dataDir, log })
const blobs = new CheckedBlobStore(folder.blobs, { recheckAfterMs: 1e9, now: Date.now, onDamaged: () => undefined })
const upstream = new ScriptedUpstream()
const stores = { records: folder.records, blobs, upstream }
const bytes = (generation: number) => (platform: string) =>
  Buffer.from(platform === 'darwin_arm64' ? 'same in all' : `${platform} ${generation}`)
await upstream.publish('1.0.0', { bytes: bytes(1) })
const { archives } = createParts(stores)
for (const name of ['linux_amd64', 'linux_arm64', 'darwin_arm64']) {
  const id = { address: widget, version: v1, platform: parsePlatform(name) }
  await (await archives.open(everything, id, newCall())).value[Symbol.asyncDispose]()
}
await upstream.publish('1.0.0', { bytes: bytes(2) })
const { refresh } = await createCare(stores)
process.send?.('held')
await refresh.refresh({ address: 'acme/widget', version: '1.0.0' }, { accept: true })
// Whoever began this ends it.
setTimeout(() => undefined, 20_000)
