import { expect, it } from 'vitest'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import { moduleId, moduleRecord, openStock } from './stock/stock-fixture.ts'

const VPC = 'acme/vpc/aws 1.0.0'
const { address, version } = moduleId(VPC)

it('a deleted version is not held any more, in this process and the next', async () => {
  const records = new MemoryRecordStore()
  const before = openStock({ records })
  await before.saveModule(VPC)
  await before.saveModule('acme/vpc/aws 2.0.0')
  await before.modules.delete(address, version)
  await before.modules.delete(address, version)
  for (const { modules } of [before, openStock({ records })]) {
    expect(await modules.find(address, version)).toBeUndefined()
    expect(await modules.heldVersions(address)).toEqual(['2.0.0'])
  }
  expect(before.inventory.count('module')).toBe(1)
})

it('a read that is under way during a deletion does not bring the record back', async () => {
  const records = new MemoryRecordStore()
  await openStock({ records }).saveModule(VPC)
  const { modules } = openStock({ records })
  await Promise.all([modules.find(address, version), modules.delete(address, version)])
  expect(await modules.find(address, version)).toBeUndefined()
})

it('saving and deleting at the same time come out in the order of the calls', async () => {
  const records = new MemoryRecordStore()
  const { modules, inventory } = openStock({ records })
  const record = moduleRecord(VPC)
  await Promise.all([modules.save(address, record), modules.delete(address, version), modules.save(address, record)])
  expect(await modules.find(address, version)).toEqual(record)
  expect(inventory.count('module')).toBe(1)
})

it('lists the modules that are recorded, and nothing else that lies there', async () => {
  const { modules, records, saveModule } = openStock()
  await saveModule(VPC)
  await saveModule('acme/Other/gcp 1.0.0')
  await records.put(['modules', 'registry.example.test', 'acme', '-bad-', 'aws', '1.0.0'], 1)
  expect((await Array.fromAsync(modules.modules())).map(({ name }) => name).sort()).toEqual(['Other', 'vpc'])
})
