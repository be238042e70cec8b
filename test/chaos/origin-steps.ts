import type { RequestKind } from '../origin/origin-request.ts'
import type { Chaos } from './chaos.ts'
import {
  chooseFrom,
  chooseProvider,
  choosePublished,
  chooseSigning,
  chooseSize,
  nextVersion,
  PLATFORMS,
  somePlatforms,
} from './choices.ts'
import { LENIENT_HOST } from './edition.ts'
import { advance } from './mirror-steps.ts'
import type { Question } from './question.ts'
import type { Step } from './step.ts'
import { pickRecipe, type Recipe, type Scope } from './trouble.ts'
import { TrueProvider, TrueVersion } from './truth.ts'

const MAX_FAULTS = 4
/** Older than a list is used without asking. */
const OLD_MS = 360_000

/** What happens at the origin. */
export const ORIGIN_STEPS: Readonly<Record<string, Step>> = {
  publish: { weight: 60, run: publish },
  'publish other bytes': { weight: 22, run: publishOtherBytes },
  'sign anew': { weight: 8, run: signAnew },
  grow: { weight: 15, run: grow },
  shrink: { weight: 4, run: shrink },
  withdraw: { weight: 12, run: withdraw },
  'withdraw a provider': { weight: 3, run: withdrawProvider },
  'publish again': { weight: 8, run: publishAgain },
  'harmless fault': { weight: 50, run: (chaos) => addFault(chaos, (recipe) => recipe.effect === undefined) },
  fault: { weight: 110, storm: true, run: (chaos) => addFault(chaos, (recipe) => recipe.effect !== undefined) },
  'end of a fault': { weight: 90, run: (chaos) => clearFault(chaos) },
  'outage when lists are old': { weight: 12, run: outage },
  'outage after an absence': { weight: 10, run: outageAfterAbsence },
  'origin stops': { weight: 8, storm: true, run: stopOrigin },
  'origin starts': { weight: 25, storm: true, run: startOrigin },
}

async function publish(chaos: Chaos): Promise<void> {
  const provider = chooseProvider(chaos)
  const version = nextVersion(chaos, provider)
  const signing = chooseSigning(chaos, provider)
  const platforms = somePlatforms(chaos)
  chaos.note(`publish ${version.name} for ${platforms} (${signing})`)
  const content = await chaos.world.createContent(version, PLATFORMS, chooseSize(chaos, provider))
  await chaos.world.publish(version, { content, platforms, signing })
}

/** Another generation: the same version, other bytes. */
async function publishOtherBytes(chaos: Chaos): Promise<void> {
  const version = chooseVersion(chaos)
  if (version === undefined) return
  const signing = chooseSigning(chaos, version.provider)
  const platforms = chaos.random.chance(0.7) ? (version.current?.platforms ?? []) : somePlatforms(chaos)
  chaos.note(`publish other bytes as ${version.name} for ${platforms} (${signing})`)
  const content = await chaos.world.createContent(version, PLATFORMS, chooseSize(chaos, version.provider))
  await chaos.world.publish(version, { content, platforms, signing })
}

async function signAnew(chaos: Chaos): Promise<void> {
  const version = chooseVersion(chaos)
  const { current } = version ?? {}
  if (version === undefined || current === undefined) return
  const signing = chooseSigning(chaos, version.provider)
  chaos.note(`sign ${version.name} anew (${signing})`)
  await chaos.world.publish(version, { ...current, signing })
}

async function grow(chaos: Chaos): Promise<void> {
  const version = chooseVersion(chaos)
  const { current } = version ?? {}
  const more = PLATFORMS.filter((platform) => current?.platforms.includes(platform) === false)
  if (version === undefined || current === undefined || more.length === 0) return
  const platforms = [...current.platforms, chaos.random.pick(more)]
  chaos.note(`grow ${version.name} to ${platforms}`)
  await chaos.world.publish(version, { content: current.content, platforms, signing: signingOf(current.signed) })
}

async function shrink(chaos: Chaos): Promise<void> {
  const version = chooseVersion(chaos)
  const { current } = version ?? {}
  if (version === undefined || current === undefined || current.platforms.length < 2) return
  const platforms = current.platforms.slice(1)
  chaos.note(`shrink ${version.name} to ${platforms}`)
  await chaos.world.publish(version, { content: current.content, platforms, signing: signingOf(current.signed) })
}

async function withdraw(chaos: Chaos): Promise<void> {
  const version = chooseVersion(chaos)
  if (version === undefined) return
  chaos.note(`withdraw ${version.name}`)
  await chaos.world.withdraw(version)
}

async function withdrawProvider(chaos: Chaos): Promise<void> {
  const provider = choosePublished(chaos)
  chaos.note(`withdraw ${provider.name}`)
  await chaos.world.withdrawProvider(provider)
}

/** What was withdrawn comes back as it was. */
async function publishAgain(chaos: Chaos): Promise<void> {
  const withdrawn = chaos.world.providers.flatMap(({ versions }) =>
    [...versions.values()].filter((version) => version.current === undefined && version.editions.length > 0),
  )
  if (withdrawn.length === 0) return
  const version = chaos.random.pick(withdrawn)
  const last = version.editions.at(-1)
  if (last === undefined) return
  chaos.note(`publish ${version.name} again`)
  await chaos.world.publish(version, { ...last, signing: signingOf(last.signed) })
}

async function addFault(chaos: Chaos, which: (recipe: Recipe) => boolean): Promise<void> {
  const { world, random } = chaos
  if (world.troubles.count >= MAX_FAULTS) await world.troubles.clearOldest()
  const recipe = pickRecipe(random, which)
  const scope = chooseScope(chaos, recipe)
  chaos.note(`fault: ${recipe.name} for ${JSON.stringify(scope)}`)
  await world.addFault(recipe, scope)
}

async function clearFault(chaos: Chaos): Promise<void> {
  chaos.note('the oldest fault ends')
  await chaos.world.troubles.clearOldest()
}

async function stopOrigin(chaos: Chaos): Promise<void> {
  chaos.note('the origin stops')
  await chaos.world.troubles.stopOrigin()
}

/** All that was known of a provider is still told when it is old and the origin is gone. */
async function outage(chaos: Chaos): Promise<void> {
  const { random, world } = chaos
  const provider = choosePublished(chaos)
  const index: Question = { route: 'index', provider, foreign: false, version: undefined, platform: undefined }
  await advance(chaos, OLD_MS)
  await chaos.pose(index)
  const document = chooseFrom(chaos, 'document', provider)
  await chaos.pose(document)
  await advance(chaos, OLD_MS)
  await stopOrigin(chaos)
  await chaos.pose(index)
  await chaos.pose(random.chance(0.5) ? document : chooseFrom(chaos, 'archive', provider))
  chaos.note('the origin starts')
  await world.troubles.startOrigin()
}

/** What the origin did not have some time ago is no word about now, when it cannot be asked. */
async function outageAfterAbsence(chaos: Chaos): Promise<void> {
  const { random, step } = chaos
  // Nobody else asks for these, so that nothing but the answers of this step can be remembered.
  const provider = random.chance(0.5) ? choosePublished(chaos) : new TrueProvider(`${LENIENT_HOST}/ghost/never${step}`)
  const version = new TrueVersion(provider, `8.8.${step}`, `8.8.${step}`)
  const question: Question = { route: 'document', provider, foreign: false, version, platform: undefined }
  const before = await chaos.pose(question)
  await advance(chaos, OLD_MS)
  await stopOrigin(chaos)
  const after = await chaos.pose(question)
  if (before?.status === 200 && after?.status === 200)
    chaos.fail('an absence of long ago is told in an outage', question)
  chaos.note('the origin starts')
  await chaos.world.troubles.startOrigin()
}

async function startOrigin(chaos: Chaos): Promise<void> {
  chaos.note('the origin starts')
  await chaos.world.troubles.startOrigin()
}

function chooseScope(chaos: Chaos, recipe: Recipe): Scope & { kinds: readonly RequestKind[] } {
  const { random, world } = chaos
  const everything = recipe.kinds.length > 4 && random.chance(0.15)
  const kind = random.pick(recipe.kinds)
  const kinds = everything ? recipe.kinds : [kind]
  const provider = choosePublished(chaos)
  const { host } = provider
  if (kind === 'discovery' || random.chance(0.3))
    return { kinds, host: random.chance(0.5) ? host : random.pick(world.hosts) }
  const version = [...provider.versions.values()].at(-1)
  if (everything || kind === 'versions' || version === undefined || random.chance(0.5)) {
    return { kinds, host, provider: provider.name }
  }
  const one = { kinds, host, provider: provider.name, version: version.spelling }
  const named = kind === 'download' || kind === 'archive'
  return named && random.chance(0.5) ? { ...one, platform: random.pick(PLATFORMS) } : one
}

/** One that is published now. */
function chooseVersion({ random, world }: Chaos): TrueVersion | undefined {
  const published = world.providers.flatMap(({ versions }) =>
    [...versions.values()].filter((version) => version.current !== undefined),
  )
  return published.length === 0 ? undefined : random.pickLate(published)
}

function signingOf(signed: boolean): 'good' | 'unsigned' {
  return signed ? 'good' : 'unsigned'
}
