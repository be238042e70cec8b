import { expect } from 'vitest'
import { silentLog } from '../../src/log.ts'
import { BlobLeases } from '../../src/store/blob-leases.ts'
import { CheckedBlobStore } from '../../src/store/checked-blob-store.ts'
import { DiskBlobStore } from '../../src/store/disk/disk-blob-store.ts'
import { DiskRecordStore } from '../../src/store/disk/disk-record-store.ts'
import { DurableFolders } from '../../src/store/disk/durable-folders.ts'
import { MetadataFiles } from '../../src/store/disk/metadata-files.ts'
import { openStateFolder } from '../../src/store/disk/state-folder.ts'
import { KeyvMetadataCache } from '../../src/store/keyv-metadata-cache.ts'
import { LeasedBlobStore } from '../../src/store/leased-blob-store.ts'
import { MemoryBlobStore } from '../../src/store/memory/memory-blob-store.ts'
import { MemoryMetadataCache } from '../../src/store/memory/memory-metadata-cache.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import { MemoryStateStore } from '../../src/store/memory/memory-state-store.ts'
import { blobStoreSuite } from '../conformance/blob-store.suite.ts'
import { metadataCacheSuite } from '../conformance/metadata-cache.suite.ts'
import { recordStoreSuite } from '../conformance/record-store.suite.ts'
import { stateStoreSuite } from '../conformance/state-store.suite.ts'
import { makeTempFolder } from './temp-folder.ts'

const nothing = { [Symbol.asyncDispose]: async () => undefined }
const checking = {
  recheckAfterMs: 0,
  now: () => Date.now(),
  onDamaged: (digest: string) => expect.fail(`${digest} is not damaged`),
}

async function diskFolders(): Promise<AsyncDisposable & { folders: DurableFolders }> {
  const folder = await makeTempFolder()
  return { folders: new DurableFolders(folder.path), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

blobStoreSuite('MemoryBlobStore', async () => ({ ...nothing, store: new MemoryBlobStore() }))
blobStoreSuite('DiskBlobStore', async () => {
  const disk = await diskFolders()
  return { ...disk, store: new DiskBlobStore(disk.folders) }
})
blobStoreSuite('CheckedBlobStore over DiskBlobStore', async () => {
  const disk = await diskFolders()
  return { ...disk, store: new CheckedBlobStore(new DiskBlobStore(disk.folders), checking) }
})

blobStoreSuite('LeasedBlobStore over MemoryBlobStore', async () => ({
  ...nothing,
  store: new LeasedBlobStore(new MemoryBlobStore(), new BlobLeases()),
}))

recordStoreSuite('MemoryRecordStore', async () => ({ ...nothing, store: new MemoryRecordStore() }))
recordStoreSuite('DiskRecordStore', async () => {
  const disk = await diskFolders()
  return { ...disk, store: new DiskRecordStore(disk.folders, silentLog()) }
})

stateStoreSuite('MemoryStateStore', async () => ({ ...nothing, store: new MemoryStateStore() }))
stateStoreSuite('StateFolder', async () => {
  const folder = await makeTempFolder()
  const state = await openStateFolder({ stateDir: folder.path, log: silentLog() })
  const dispose = async (): Promise<void> => {
    await state[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  }
  return { store: state, [Symbol.asyncDispose]: dispose }
})

metadataCacheSuite('MemoryMetadataCache', async () => ({ ...nothing, cache: new MemoryMetadataCache() }))
metadataCacheSuite('KeyvMetadataCache over files', async () => {
  const disk = await diskFolders()
  return { ...disk, cache: new KeyvMetadataCache({ store: new MetadataFiles(disk.folders), log: silentLog() }) }
})
metadataCacheSuite('KeyvMetadataCache without memory', async () => {
  const disk = await diskFolders()
  const store = new MetadataFiles(disk.folders)
  return { ...disk, cache: new KeyvMetadataCache({ store, log: silentLog(), maxCharacters: 1 }) }
})
