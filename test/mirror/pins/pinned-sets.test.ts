import { beforeEach, expect, it } from 'vitest'
import { PinnedSets } from '../../../src/mirror/pins/pinned-sets.ts'
import { MemoryRecordStore } from '../../../src/store/memory/memory-record-store.ts'
import { failureOf, recordingLog, StillClock } from '../parts-fixture.ts'

const AWS = 'registry.terraform.io/hashicorp/aws'
const VPC = 'registry.terraform.io/terraform-aws-modules/vpc/aws'

let records: MemoryRecordStore
let clock: StillClock
const open = (log = recordingLog().log): Promise<PinnedSets> => PinnedSets.open({ records, now: clock.now, log })

beforeEach(() => {
  records = new MemoryRecordStore()
  clock = new StillClock()
})

it('holds the items that are named, and all items of a version or provider that is named without more', async () => {
  const sets = await open()
  await sets.put('one', [`${AWS} 5.100.0 linux_amd64`])
  await sets.put('version', [`${AWS} 4.0.0`])
  await sets.put('modules', [VPC])
  expect(sets.isPinned(`${AWS} 5.100.0 linux_amd64`)).toBe(true)
  expect(sets.isPinned(`${AWS} 5.100.0 darwin_arm64`)).toBe(false)
  expect(sets.isPinned(`${AWS} 4.0.0 darwin_arm64`)).toBe(true)
  expect(sets.isPinned(`${AWS} 4.0.0-beta1 darwin_arm64`)).toBe(false)
  expect(sets.isPinned(`${AWS}x 4.0.0 darwin_arm64`)).toBe(false)
  expect(sets.isPinned(`${VPC} 5.1.0`)).toBe(true)
  expect(sets.setsOf(`${VPC} 5.1.0`)).toEqual(['modules'])
})

it('an item of several sets is held until the last of them lets it go', async () => {
  const sets = await open()
  await sets.put('b', [`${AWS} 1.0.0`, AWS])
  await sets.put('a', [AWS, AWS])
  const item = `${AWS} 1.0.0 linux_amd64`
  expect(sets.setsOf(item)).toEqual(['a', 'b'])
  await sets.put('b', [`${AWS} 2.0.0`])
  expect(sets.setsOf(item)).toEqual(['a'])
  expect([await sets.delete('a'), await sets.delete('a')]).toEqual([true, false])
  expect(sets.isPinned(item)).toBe(false)
  expect(sets.isPinned(`${AWS} 2.0.0 linux_amd64`)).toBe(true)
})

it('names are kept in one spelling, each once, and survive a restart with the time of the change', async () => {
  const sets = await open()
  const put = await sets.put('ci', [
    `Registry.Terraform.io/HashiCorp/AWS  5.1.0 linux_amd64`,
    `${AWS} 5.1.0 linux_amd64`,
  ])
  expect(put).toEqual({ name: 'ci', updatedAt: '2026-11-30T12:00:00.000Z', items: [`${AWS} 5.1.0 linux_amd64`] })
  clock.advance(1_000)
  const again = await open()
  expect(again.list()).toEqual([put])
  expect(again.get('ci')).toEqual(put)
  expect(again.isPinned(`${AWS} 5.1.0 linux_amd64`)).toBe(true)
  await again.delete('ci')
  expect((await open()).list()).toEqual([])
})

it.each([
  ['', 'INVALID_ADDRESS'],
  ['hashicorp/aws 1.0.0', 'INVALID_ADDRESS'],
  [`${AWS} latest`, 'INVALID_ADDRESS'],
  [`${AWS} 1.0.0 linux_amd64 more`, 'INVALID_ADDRESS'],
  [`${VPC} 1.0.0 linux_amd64`, 'INVALID_ADDRESS'],
  [`${AWS} 1.0.0 windows`, expect.any(String)],
])('%j is no item, and the set stays as it was', async (item, code) => {
  const sets = await open()
  await sets.put('ci', [AWS])
  expect(await failureOf(sets.put('ci', [VPC, item]))).toMatchObject({ code })
  expect(sets.get('ci')?.items).toEqual([AWS])
})

it('a set that could not be written holds what it held before', async () => {
  const sets = await open()
  await sets.put('ci', [AWS])
  records.put = async () => {
    throw new Error('full')
  }
  await failureOf(sets.put('ci', [VPC]))
  expect(sets.get('ci')?.items).toEqual([AWS])
  expect(sets.isPinned(`${VPC} 1.0.0`)).toBe(false)
})

it('a set that cannot be read is told, and the others hold', async () => {
  await (await open()).put('good', [AWS])
  await records.put(['pins', 'bad'], { format: 2 })
  const { log, lines } = recordingLog()
  const sets = await open(log)
  expect(sets.list().map(({ name }) => name)).toEqual(['good'])
  expect(lines).toContainEqual(expect.objectContaining({ level: 'error', set: 'bad' }))
})
