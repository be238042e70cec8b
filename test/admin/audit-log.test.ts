import { expect, test } from 'vitest'
import { AuditLog } from '../../src/admin/audit-log.ts'
import { MirrorError } from '../../src/errors.ts'
import { MemoryStateStore } from '../../src/store/memory/memory-state-store.ts'
import { openAdminStage } from './admin-stage.ts'

const entry = { who: 'admin.token', client: '127.0.0.1', action: 'pin', result: 'done', requestId: 'r' } as const

async function openAudit() {
  const clock = { now: Date.parse('2026-12-01T10:00:00Z') }
  const journal = await new MemoryStateStore().journal('audit')
  const open = () => AuditLog.open({ journal, now: () => clock.now })
  const read = async () => {
    const lines: Record<string, unknown>[] = []
    for await (const line of journal.read()) lines.push(line as Record<string, unknown>)
    return lines
  }
  return { clock, journal, open, read }
}

test('the newest lines stay and the oldest go, in their order, also where many are written at once', async () => {
  const { journal, open, read } = await openAudit()
  for (let line = 0; line < 24_990; line++) await journal.append({ line }, 'written')
  const audit = await open()
  await Promise.all(Array.from({ length: 20 }, (_, index) => audit.record({ ...entry, target: String(index) })))
  const lines = await read()
  expect(lines).toHaveLength(20_010)
  expect(lines.slice(-20).map(({ target }) => target)).toEqual(Array.from({ length: 20 }, (_, index) => String(index)))
  expect(lines[0]).toEqual({ line: 5_000 })
})

test('who has no token writes a line a minute at most, which counts the others', async () => {
  const { clock, open, read } = await openAudit()
  const audit = await open()
  const refused = { client: '10.0.0.1', requestId: 'r' }
  for (let each = 0; each < 1_000; each++) void audit.recordUnauthorized(refused)
  clock.now += 60_000
  await audit.recordUnauthorized(refused)
  expect((await read()).map(({ attempts }) => attempts)).toEqual([1, 1_000])
})

test('a clock that is set back silences nobody', async () => {
  const { clock, open, read } = await openAudit()
  const audit = await open()
  await audit.recordUnauthorized({ client: '10.0.0.1', requestId: 'r' })
  clock.now -= 365 * 86_400_000
  await audit.recordUnauthorized({ client: '10.0.0.1', requestId: 'r' })
  expect(await read()).toHaveLength(2)
})

test('a change that cannot be written down is answered as a failure, and counted', async () => {
  const audit = {
    record: () => Promise.reject(new MirrorError('STORAGE_FULL', 'no room for the audit', { operation: 'append' })),
  }
  await using stage = await openAdminStage({}, audit as unknown as AuditLog)
  const done = await stage.ask('/pins/release', { method: 'DELETE' })
  expect([done.status, done.json.code]).toEqual([507, 'STORAGE_FULL'])
  const refused = await stage.ask('/verify', { method: 'POST', body: { rate: 0 } })
  expect([refused.status, refused.json.code]).toEqual([507, 'STORAGE_FULL'])
  expect((await stage.ask('/jobs')).status).toBe(200)
  expect(await stage.metrics.text()).toContain('terramirror_audit_failures_total 2')
})
