import { expect, it } from 'vitest'
import { parsePlatform } from '../../src/protocol/platform.ts'
import { createParts, failureOf, freshness, newCall, v1, widget } from './parts-fixture.ts'

it('a platform that only the new bytes of a pinned version have is refused, not told as absent', async () => {
  const { upstream, releases, catalogue, clock } = createParts()
  await upstream.publish('1.0.0', { platforms: ['linux_amd64'] })
  await releases.get(widget, v1, newCall())
  await catalogue.savePin(widget, v1, { format: 1, generation: 1, pinnedAt: new Date(clock.now()).toISOString() })

  await upstream.publish('1.0.0', { platforms: ['linux_amd64', 'darwin_arm64'], generation: 2 })
  clock.advance(freshness.freshForMs)
  const { value: known } = await releases.refresh(widget, v1, newCall())
  expect(Object.keys(known.release.platforms)).toEqual(['linux_amd64'])
  const asked = releases.getPlatform(widget, v1, parsePlatform('darwin_arm64'), newCall())
  expect(await failureOf(asked)).toMatchObject({ code: 'RELEASE_CHANGED' })
  const unknown = releases.getPlatform(widget, v1, parsePlatform('windows_386'), newCall())
  expect(await failureOf(unknown)).toMatchObject({ code: 'PLATFORM_NOT_FOUND' })
})
