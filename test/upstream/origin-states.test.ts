import { beforeEach, describe, expect, it } from 'vitest'
import { OriginList } from '../../src/admin/schema/stock.ts'
import { MirrorError } from '../../src/errors.ts'
import { findOriginKey } from '../../src/policy/origin-key.ts'
import { OriginStates } from '../../src/upstream/origin-states.ts'

const origins = {
  'registry.example.test': { verification: { signatures: 'required' as const } },
  '*.corp.example': { verification: { signatures: 'whenListed' as const } },
}
const place = { host: 'registry.example.test', upstreamUrl: 'https://registry.example.test/v1/' }
const down = new MirrorError('UPSTREAM_UNREACHABLE', 'Cannot read https://registry.example.test/v1/: refused', place)
const limited = new MirrorError('UPSTREAM_RATE_LIMITED', 'it limits our requests', {
  ...place,
  upstreamStatus: 429,
  retryAfterMs: 30_000,
})

let now: number
let states: OriginStates

beforeEach(() => {
  now = Date.parse('2026-12-01T10:00:00Z')
  const keys = Object.keys(origins)
  states = new OriginStates({ origins, keyOf: (hostname) => findOriginKey(keys, hostname), now: () => now })
})

const registry = () => states.list([])[0]

describe('the state of an origin', () => {
  it('is known for each that is configured, patterns too, from the start, and is what the admin API promises', () => {
    const list = states.list([])
    expect(OriginList.parse({ items: list, next: null }).items).toEqual(list)
    expect(list.map(({ host, health, signatures }) => [host, health, signatures])).toEqual([
      ['registry.example.test', 'unknown', 'required'],
      ['*.corp.example', 'unknown', 'whenListed'],
    ])
  })

  it('is well after an answer, also after one that says what does not exist', () => {
    const watch = states.watch('registry.example.test')
    watch.failed(new MirrorError('PROVIDER_NOT_FOUND', 'it is not there', { address: 'a/b/c' }))
    expect(registry()).toMatchObject({ health: 'well', lastAnswerAt: '2026-12-01T10:00:00.000Z', lastError: null })
  })

  it('is failing after an outage, says which, and remembers it when it is well again', () => {
    const watch = states.watch('registry.example.test')
    watch.answered()
    now += 5_000
    watch.failed(down)
    const lastError = { at: '2026-12-01T10:00:05.000Z', error: down.message, code: 'UPSTREAM_UNREACHABLE' }
    expect(registry()).toMatchObject({ health: 'failing', lastAnswerAt: '2026-12-01T10:00:00.000Z', lastError })
    now += 5_000
    watch.answered()
    expect(registry()).toMatchObject({ health: 'well', lastAnswerAt: '2026-12-01T10:00:10.000Z', lastError })
  })

  it('tells when an origin that failed is asked again, until then', () => {
    states.watch('registry.example.test').failed(down)
    states.postpone('registry.example.test', now + 10_000)
    expect(registry()).toMatchObject({ health: 'failing', retryAt: '2026-12-01T10:00:10.000Z' })
    now += 10_000
    expect(registry()).toMatchObject({ health: 'failing', retryAt: null })
  })

  it('is backing off as long as it limits us, though another host of it answers meanwhile', () => {
    const watch = states.watch('registry.example.test')
    watch.failed(limited)
    watch.answered()
    expect(registry()).toMatchObject({ health: 'backingOff', retryAt: '2026-12-01T10:00:30.000Z' })
    now += 30_000
    expect(registry()).toMatchObject({ health: 'well', retryAt: null })
  })

  it('does not change when we are stopping, or when the fault is ours', () => {
    const watch = states.watch('registry.example.test')
    watch.failed(new MirrorError('SHUTTING_DOWN', 'stopping', {}))
    watch.failed(new Error('a bug'))
    expect(registry()).toMatchObject({ health: 'unknown', lastError: null })
  })

  it('is shared by all hosts below a pattern, and is nothing for hosts that are not configured', () => {
    states.watch('a.corp.example').answered()
    states.watch('b.corp.example').failed(down)
    states.watch('c.example').failed(down)
    states.postpone('c.example', now + 1_000)
    expect(states.list([]).map(({ host, health }) => [host, health])).toEqual([
      ['registry.example.test', 'unknown'],
      ['*.corp.example', 'failing'],
    ])
  })

  it('counts what is held of it, by the host in its name', () => {
    const held = [
      { name: 'registry.example.test/acme/widget 1.0.0 linux_amd64', kind: 'package' },
      { name: 'registry.example.test/acme/widget 1.0.0 linux_arm64', kind: 'package' },
      { name: 'a.corp.example/acme/widget 1.0.0 linux_amd64', kind: 'package' },
      { name: 'b.corp.example/acme/vpc/aws 5.1.0', kind: 'module' },
      { name: 'not.configured.example/acme/vpc/aws 5.1.0', kind: 'module' },
    ] as const
    expect(states.list(held).map(({ packages, modules }) => [packages, modules])).toEqual([
      [2, 0],
      [1, 1],
    ])
  })
})
