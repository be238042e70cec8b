import type { Chaos } from './chaos.ts'
import { LENIENT_HOST, type Signing, type Size } from './edition.ts'
import type { Question } from './question.ts'
import { TrueProvider, TrueVersion } from './truth.ts'

/** Providers that are published sooner or later. */
const PROVIDERS = [
  'registry.example.test/acme/widget',
  'registry.example.test/acme/gadget',
  'registry.example.test/acme/heavy',
  'registry.example.test/shady/tool',
  'registry.example.test/umbrella/late',
  'other.example.test/acme/widget',
  'other.example.test/solo/gear',
  `${LENIENT_HOST}/acme/widget`,
  `${LENIENT_HOST}/plain/tool`,
  `${LENIENT_HOST}/turning/coat`,
] as const

export const PLATFORMS = ['linux_amd64', 'linux_arm64', 'darwin_arm64', 'windows_amd64', 'freebsd_386'] as const

/** A question that a client may ask; sometimes for what was never there. */
export function chooseQuestion(chaos: Chaos, route: Question['route']): Question {
  const { random } = chaos
  const kind = random.weighted({ published: 88, unpublished: 8, foreign: 4 })
  if (kind === 'foreign') return foreignQuestion(route, random.int(1, 50))
  const provider =
    kind === 'published' ? choosePublished(chaos) : new TrueProvider(`${host(chaos)}/ghost/g${random.int(1, 30)}`)
  if (route === 'index') return { route, provider, foreign: false, version: undefined, platform: undefined }
  return chooseFrom(chaos, route, provider)
}

/** A question about a version of one provider. */
export function chooseFrom(chaos: Chaos, route: 'document' | 'archive', provider: TrueProvider): Question {
  const { random } = chaos
  const known = [...provider.versions.values()]
  const version =
    known.length > 0 && random.chance(0.92) ? random.pickLate(known) : unheardOf(provider, random.int(1, 20))
  return {
    route,
    provider,
    foreign: false,
    version,
    platform: route === 'archive' ? choosePlatform(chaos, version) : undefined,
  }
}

/** A platform, mostly one that the version has or had. */
export function choosePlatform({ random }: Chaos, version: TrueVersion): string {
  const { platforms } = version
  return platforms.length > 0 && random.chance(0.93) ? random.pick(platforms) : random.pick(PLATFORMS)
}

/** A provider that was published at some time. @throws Error if there is none yet */
export function choosePublished({ random, world }: Chaos): TrueProvider {
  return random.pick(world.providers)
}

/** A provider to publish something at. */
export function chooseProvider({ random, world }: Chaos): TrueProvider {
  return world.provider(random.pick(PROVIDERS))
}

/** A version that the provider does not have yet, in one of the spellings that origins use. */
export function nextVersion({ random }: Chaos, provider: TrueProvider): TrueVersion {
  const number = provider.versions.size + 1
  const kind = random.weighted({ plain: 80, pre: 8, build: 6, short: 6 })
  if (kind === 'pre') return provider.version(`1.${number}.0-beta.${random.int(1, 9)}`)
  if (kind === 'build') return provider.version(`1.${number}.0+build.${random.int(1, 9)}`)
  if (kind === 'short') return provider.version(`1.${number}.0`, `1.${number}`)
  return provider.version(`1.${number}.${random.int(0, 3)}`)
}

/** Some platforms, in a random order; at least one. */
export function somePlatforms({ random }: Chaos): string[] {
  const chosen = PLATFORMS.filter(() => random.chance(0.5))
  return chosen.length === 0 ? ['linux_amd64'] : chosen
}

/** Who signs the next edition at this provider. */
export function chooseSigning({ random }: Chaos, { host, namespace }: TrueProvider): Signing {
  if (namespace === 'shady') {
    return random.pick(['good', 'unsigned', 'wrong key', 'revoked key', 'two digests', 'one bad shasum'])
  }
  if (namespace === 'plain') return 'unsigned'
  if (host === LENIENT_HOST) return random.weighted({ good: 30, unsigned: 60, 'wrong key': 5, 'other key': 5 })
  return random.weighted({
    good: 82,
    'other key': 6,
    unsigned: 3,
    'wrong key': 3,
    'revoked key': 2,
    'two digests': 2,
    'one bad shasum': 2,
  })
}

export function chooseSize({ random }: Chaos, { type }: TrueProvider): Size {
  if (type === 'heavy') return 'large'
  return random.weighted({ small: 80, large: 10, 'no zip': 10 })
}

function foreignQuestion(route: Question['route'], number: number): Question {
  const provider = new TrueProvider(`foreign${number}.example.test/acme/widget`)
  const version = route === 'index' ? undefined : new TrueVersion(provider, '1.0.0', '1.0.0')
  return { route, provider, foreign: true, version, platform: route === 'archive' ? 'linux_amd64' : undefined }
}

function host({ random, world }: Chaos): string {
  return random.pick(world.hosts)
}

function unheardOf(provider: TrueProvider, number: number): TrueVersion {
  return new TrueVersion(provider, `9.9.${number}`, `9.9.${number}`)
}
