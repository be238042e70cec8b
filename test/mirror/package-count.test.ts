import { expect, it } from 'vitest'
import { PackageCount } from '../../src/mirror/package-count.ts'
import { MemoryRecordStore } from '../../src/store/memory/memory-record-store.ts'
import type { RecordKey } from '../../src/store/record-store.ts'

const never = new AbortController().signal

function archive(type: string, version: string, platform: string): RecordKey {
  return ['providers', 'registry.example.test', 'acme', type, 'versions', version, 'archives', platform]
}

async function storeOf(...keys: RecordKey[]): Promise<MemoryRecordStore> {
  const records = new MemoryRecordStore()
  for (const key of keys) await records.put(key, {})
  return records
}

it('counts archives, and neither releases nor what else is recorded', async () => {
  const records = await storeOf(
    archive('widget', '1.0.0', 'linux_amd64'),
    archive('widget', '1.0.0', 'darwin_arm64'),
    archive('gadget', '2.0.0', 'linux_amd64'),
    ['providers', 'registry.example.test', 'acme', 'widget', 'trust'],
    ['providers', 'registry.example.test', 'acme', 'widget', 'versions', '1.0.0', 'release'],
    ['providers', 'registry.example.test', 'acme', 'empty', 'versions', '1.0.0', 'release'],
    ['hashes', 'a'],
  )
  const count = new PackageCount(records)
  expect(count.value).toBeUndefined()
  await count.measure(never)
  expect(count.value).toBe(3)
})

it('counts what is saved before, while and after the count once each', async () => {
  const before = archive('before', '1.0.0', 'linux_amd64')
  const records = await storeOf(archive('held', '1.0.0', 'linux_amd64'))
  const count = new PackageCount(records)
  const save = (key: RecordKey) => count.adding(key, () => records.put(key, {}))
  await save(before)
  const children = records.children.bind(records)
  let saving = true
  records.children = async (prefix) => {
    if (prefix.length === 2 && saving) {
      saving = false
      // One that the count will come by, and one that it has passed.
      await save(archive('while', '1.0.0', 'linux_amd64'))
      await save(['providers', 'aaa.example.test', 'acme', 'w', 'versions', '1.0.0', 'archives', 'linux_amd64'])
    }
    return children(prefix)
  }
  await count.measure(never)
  expect(count.value).toBe(4)
  await save(archive('after', '1.0.0', 'linux_amd64'))
  expect(count.value).toBe(5)
})

it('a package that could not be saved counts for nothing, whenever it failed', async () => {
  const count = new PackageCount(await storeOf())
  const fail = () => count.adding(archive('full', '1.0.0', 'linux_amd64'), () => Promise.reject(new Error('full')))
  await expect(fail()).rejects.toThrow('full')
  await count.measure(never)
  await expect(fail()).rejects.toThrow('full')
  expect(count.value).toBe(0)
})

it('stays unknown when it is aborted', async () => {
  const count = new PackageCount(await storeOf(archive('widget', '1.0.0', 'linux_amd64')))
  await count.measure(AbortSignal.abort())
  expect(count.value).toBeUndefined()
})
