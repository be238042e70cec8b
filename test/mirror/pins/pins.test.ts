import { expect, test } from 'vitest'
import { silentLog } from '../../../src/log.ts'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { Pins } from '../../../src/mirror/pins/pins.ts'
import { parseHostname } from '../../../src/protocol/hostname.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'

const WIDGET = 'registry.example.test/acme/widget 1.0.0 linux_amd64'

async function openPins(): Promise<Pins> {
  return new Pins({
    sets: await PinnedSets.open({ records: new MemoryRecordStore(), now: Date.now, log: silentLog() }),
    inventory: { all: () => [{ name: WIDGET, size: 1_000 }] },
    jobs: { itemsOf: async () => [] },
    readLockFile: async () => [],
    defaultHost: parseHostname('registry.example.test'),
  })
}
const wish = (...items: string[]) => ({ items, lockFiles: [], jobs: [] })

test('an item without a host is one of the default origin, as in warming', async () => {
  const pins = await openPins()
  expect(await pins.put('ci', wish('acme/widget 1.0.0', 'acme/net/aws', 'other.test/acme/widget'))).toMatchObject({
    items: ['other.test/acme/widget', 'registry.example.test/acme/net/aws', 'registry.example.test/acme/widget 1.0.0'],
    held: 1,
    bytes: 1_000,
  })
})

test('what names no item is told, every one, and no set is made', async () => {
  const pins = await openPins()
  const refused = pins.put('ci', wish('widget', 'acme/widget', 'acme/widget 1.x'))
  await expect(refused).rejects.toMatchObject({ code: 'REQUEST_INVALID' })
  await expect(refused).rejects.toThrow(/body\.items\[0\]: .*"widget".*body\.items\[2\]: .*"1\.x"/)
  expect((await pins.list({ limit: 10 })).items).toEqual([])
})
