import { expect, it } from 'vitest'
import { showLiveValues } from '../../src/metrics/live-values.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import { makeTempFolder } from '../store/temp-folder.ts'
import { createTestAuthority } from '../tls-fixture.ts'

const none = { server: undefined, authority: undefined }

it('what is shown is as it is when the metrics are read', async () => {
  await using folder = await makeTempFolder()
  const authority = await createTestAuthority()
  const certificates = { ...none, authority: authority.caPem }
  let ready = false
  const metrics = new Metrics({ origins: [], perProvider: false })
  showLiveValues(metrics, {
    isReady: () => ready,
    origins: () => [],
    held: (kind) => (kind === 'package' ? 3 : undefined),
    certificates: () => certificates,
    dataDir: folder.path,
  })
  expect(await metrics.text()).toMatch(/^terramirror_ready 0$/m)
  ready = true
  const text = await metrics.text()
  expect(text).toMatch(/^terramirror_ready 1$/m)
  expect(text).toMatch(/^terramirror_held_items\{kind="package"\} 3$/m)
  expect(text).not.toMatch(/kind="module"\} \d/)
  const [, free = '', size = ''] = /_free_bytes (\d+)$.*^terramirror_disk_size_bytes (\d+)$/ms.exec(text) ?? []
  expect(Number(free)).toBeGreaterThan(0)
  expect(Number(size)).toBeGreaterThanOrEqual(Number(free))
  expect(text).toMatch(/^terramirror_certificate_expiry_timestamp_seconds\{certificate="authority"\} \d+$/m)
  expect(text).not.toContain('certificate="server"')
})

it('a disk that cannot be asked has no size, and the rest is told all the same', async () => {
  const metrics = new Metrics({ origins: [], perProvider: false })
  const live = { isReady: () => true, origins: () => [], held: () => undefined, certificates: () => none }
  showLiveValues(metrics, { ...live, dataDir: '/nowhere/at/all' })
  metrics.storage.showDisk({ free: 1 })
  const text = await metrics.text()
  expect(text).toMatch(/^terramirror_ready 1$/m)
  expect(text).not.toMatch(/^terramirror_disk_(free|size)_bytes /m)
})
