import { Chaos } from './chaos.ts'
import { ChaosMirror } from './chaos-mirror.ts'
import { CLIENT_STEPS } from './client-steps.ts'
import { Judge } from './judge.ts'
import { Knowledge } from './knowledge.ts'
import { assertAtRest, type Rest } from './leaks.ts'
import { MIRROR_STEPS } from './mirror-steps.ts'
import { ORIGIN_STEPS } from './origin-steps.ts'
import { createRandom } from './random.ts'
import { settle } from './settle.ts'
import type { Step } from './step.ts'
import { World } from './world.ts'

/** How to run. */
export interface RunOptions {
  readonly seed: number
  readonly steps: number
  /** Between two looks at whether everything becomes exact and is released at rest; default 400. */
  readonly settleEvery?: number
  /** Kinds of steps that are left out, e.g. all restarts, to see whether one long life leaks. */
  readonly except?: (kind: string) => boolean
  /** Ends the run after the step under way. */
  readonly signal?: AbortSignal
}

/** What a run has done and found. */
export interface RunReport {
  readonly seed: number
  readonly steps: number
  readonly seconds: number
  /** For how long the machine was too busy for the mirror's limits to be held against the clock. */
  readonly busySeconds: number
  /** The first violation with all that is needed to look into it; undefined if there was none. */
  readonly violation: string | undefined
  /** Steps by kind. */
  readonly kinds: Readonly<Record<string, number>>
  /** Answers by route, status and cache outcome. */
  readonly answers: Readonly<Record<string, number>>
  readonly lives: number
  readonly rests: readonly Rest[]
}

const STEPS: Readonly<Record<string, Step>> = { ...CLIENT_STEPS, ...ORIGIN_STEPS, ...MIRROR_STEPS }
/** Calm and stormy stretches take turns. */
const STRETCH = 100
const FIRST_PUBLICATIONS = 8
const STEP_MS = 300_000

/** Drives a mirror and its origin through as many steps as asked, or up to the first violation. */
export async function run(options: RunOptions): Promise<RunReport> {
  const { seed, steps, settleEvery = 400, except = () => false, signal } = options
  const started = performance.now()
  await using world = await World.create(seed)
  await using mirror = await ChaosMirror.create(world)
  const knowledge = new Knowledge()
  const judge = new Judge({ world, knowledge, mirror })
  const chaos = new Chaos({ random: createRandom(seed), world, mirror, knowledge, judge })
  const kinds: Record<string, number> = {}
  const rests: Rest[] = []
  try {
    for (let count = 0; count < FIRST_PUBLICATIONS; count += 1) await ORIGIN_STEPS.publish?.run(chaos)
    await mirror.start({ aheadMs: 0 })
    while (chaos.step < steps && !isOver(chaos) && signal?.aborted !== true) {
      chaos.step += 1
      await calmDown(chaos)
      const kind = chooseKind(chaos, except)
      kinds[kind] = (kinds[kind] ?? 0) + 1
      await within(STEPS[kind]?.run(chaos), kind)
      if (chaos.step % settleEvery === 0 || chaos.step === steps) rests.push(await rest(chaos, rests))
    }
    await within(chaos.drain(), 'the last answers')
  } catch (error) {
    chaos.fail(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  if (mirror.crash !== undefined) chaos.fail(`the mirror ended by itself: ${mirror.crash}`)
  const span = { from: started, to: performance.now() }
  const seconds = Math.round((span.to - span.from) / 1_000)
  const busySeconds = Math.round(world.machine.busyMs(span) / 1_000)
  const violation = chaos.violation === undefined ? undefined : describe(chaos, seed)
  const { step, answers } = chaos
  return { seed, steps: step, seconds, busySeconds, violation, kinds, answers, lives: mirror.life, rests }
}

/** Whatever happens, a step ends. @throws Error */
async function within(step: Promise<void> | undefined, kind: string): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${kind}: still not over after ${STEP_MS} ms`)), STEP_MS)
  try {
    await Promise.race([step, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** In a calm stretch nothing is in the way. */
async function calmDown(chaos: Chaos): Promise<void> {
  if (isStormy(chaos) || chaos.step % STRETCH !== 1) return
  chaos.note('calm')
  await chaos.world.troubles.clearAll()
  await chaos.world.troubles.startOrigin()
  await chaos.mirror.setDisk({ kind: 'none' })
}

function isStormy({ step }: Chaos): boolean {
  return Math.floor((step - 1) / STRETCH) % 2 === 1
}

function chooseKind(chaos: Chaos, except: (kind: string) => boolean): string {
  const possible = Object.entries(STEPS).filter(([kind, { storm }]) => !except(kind) && (!storm || isStormy(chaos)))
  return chaos.random.weighted(Object.fromEntries(possible.map(([kind, { weight }]) => [kind, weight])))
}

async function rest(chaos: Chaos, earlier: readonly Rest[]): Promise<Rest> {
  await settle(chaos)
  const found = await assertAtRest(chaos, earlier)
  chaos.world.forgetRequests()
  return found
}

function isOver(chaos: Chaos): boolean {
  const [twin] = chaos.world.twins
  if (twin !== undefined) chaos.fail(`two requests for one thing at a time: ${twin}`)
  return chaos.violation !== undefined || chaos.mirror.crash !== undefined
}

function describe({ violation, subject, step, trail, mirror, world }: Chaos, seed: number): string {
  const about =
    subject === undefined ? [] : mirror.logTail.filter((line) => subject.every((word) => line.includes(word)))
  return [
    `seed ${seed}, found at step ${step}: ${violation}`,
    `the clock: ${world.timeline}`,
    `what the mirror logged about it:\n  ${about.slice(-12).join('\n  ')}`,
    `the last steps:\n  ${trail.slice(-30).join('\n  ')}`,
    `the mirror's log:\n  ${mirror.logTail.slice(-25).join('\n  ')}`,
    `again: npm run soak -- --seed ${seed} --steps ${step + 50} --runs 1`,
  ].join('\n\n')
}
