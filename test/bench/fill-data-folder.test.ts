import { expect, test } from 'vitest'
import { startMirror } from '../e2e/mirror-fixture.ts'
import { startOrigin } from '../origin/origin.ts'
import { fillDataFolder } from './fill-data-folder.ts'

test('the mirror serves what the generator filled in as its own, and counts its bytes', async () => {
  await using origin = await startOrigin()
  await using mirror = await startMirror({
    origin,
    config: { mode: 'sealed', origins: { 'registry.terraform.io': {} } },
  })
  const { provider, version, platform } = await fillDataFolder(mirror.dataDir, 123)
  expect({ provider, version, platform }).toEqual({
    provider: 'registry.terraform.io/bench/p2',
    version: '1.4.0',
    platform: 'linux_arm64',
  })
  await mirror.restart()
  expect(Object.keys((await mirror.index(provider)).json().versions)).toHaveLength(5)
  expect(Object.keys((await mirror.version(provider, version)).json().archives)).toHaveLength(3)
  const archive = await mirror.archive(provider, version, platform)
  expect({ status: archive.status, body: archive.body.toString() }).toEqual({
    status: 200,
    body: `${provider} ${version} ${platform}\n`,
  })
  await expect.poll(() => mirror.metrics()).toMatch(/^terramirror_cache_bytes [1-9]\d{3,}$/m)
  expect(mirror.logLines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
})
