import type { Chaos } from './chaos.ts'
import { chooseQuestion } from './choices.ts'
import { damage } from './damage.ts'
import { assertSoundFolder } from './leaks.ts'
import type { Step } from './step.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A signature may be a day older than it says, for a mirror whose clock is behind. */
const FARTHEST_BEHIND_MS = -12 * HOUR_MS

/** What happens to the mirror, its clock and its disk. */
export const MIRROR_STEPS: Readonly<Record<string, Step>> = {
  'clock goes on by seconds': { weight: 15, run: (chaos) => advance(chaos, 1_000 * chaos.random.int(5, 60)) },
  'clock goes on by minutes': { weight: 25, run: (chaos) => advance(chaos, MINUTE_MS * chaos.random.int(1, 12)) },
  'clock goes on by hours': { weight: 8, run: (chaos) => advance(chaos, HOUR_MS * chaos.random.int(1, 30)) },
  'clock is set back by minutes': { weight: 6, run: (chaos) => advance(chaos, -MINUTE_MS * chaos.random.int(1, 12)) },
  'clock is set back by hours': { weight: 4, run: (chaos) => advance(chaos, -HOUR_MS * chaos.random.int(1, 9)) },
  restart: { weight: 4, run: restart },
  'restart over damage': { weight: 4, run: restartOverDamage },
  'kill -9': { weight: 5, run: kill },
  'kill -9 during a burst': { weight: 3, run: killDuringBurst },
  'damage while it runs': { weight: 10, run: damageNow },
  'disk fault': { weight: 8, storm: true, run: breakDisk },
  'disk is well': { weight: 20, storm: true, run: mendDisk },
  'sealed for a while': { weight: 2, run: seal },
}

/** Sets the clock forward, or back. */
export async function advance(chaos: Chaos, byMs: number): Promise<void> {
  const { timeline } = chaos.world
  const aheadMs = Math.max(FARTHEST_BEHIND_MS, timeline.aheadMs + byMs)
  chaos.note(`the clock moves by ${Math.round((aheadMs - timeline.aheadMs) / 1_000)} s`)
  await timeline.set(aheadMs, () => chaos.mirror.setClock(aheadMs))
}

async function restart(chaos: Chaos): Promise<void> {
  chaos.note(`restart in good order, ${chaos.pending} questions under way`)
  await chaos.mirror.stop()
  await assertSoundFolder(chaos)
  await start(chaos)
}

async function restartOverDamage(chaos: Chaos): Promise<void> {
  await chaos.drain()
  chaos.note('restart, with damage in between')
  await chaos.mirror.stop()
  for (let count = chaos.random.int(1, 4); count > 0; count -= 1) await damage(chaos)
  await start(chaos)
}

async function kill(chaos: Chaos): Promise<void> {
  chaos.note(`kill -9, ${chaos.pending} questions under way`)
  await chaos.mirror.kill()
  await start(chaos)
}

/** At a moment at which much is going on. */
async function killDuringBurst(chaos: Chaos): Promise<void> {
  const { random, mirror } = chaos
  for (let count = random.int(3, 8); count > 0; count -= 1) {
    await chaos.pose(chooseQuestion(chaos, random.pick(['document', 'archive'])), { beside: true })
  }
  const afterMs = random.int(0, 80)
  chaos.note(`kill -9 after ${afterMs} ms`)
  await new Promise((resolve) => setTimeout(resolve, afterMs))
  await mirror.kill()
  await start(chaos)
}

async function damageNow(chaos: Chaos): Promise<void> {
  await chaos.drain()
  await damage(chaos)
}

async function breakDisk(chaos: Chaos): Promise<void> {
  const { random, mirror } = chaos
  const kind = random.weighted({ full: 60, unwritable: 20, unreadable: 20 })
  const bytesLeft = random.pick([0, 500, 5_000, 50_000, 500_000])
  chaos.note(`the disk is ${kind}${kind === 'full' ? ` after ${bytesLeft} bytes` : ''}`)
  await mirror.setDisk(kind === 'full' ? { kind, bytesLeft } : { kind })
}

async function mendDisk(chaos: Chaos): Promise<void> {
  chaos.note('the disk is well')
  await chaos.mirror.setDisk({ kind: 'none' })
}

/** The same folder, and not one connection to any origin. */
async function seal(chaos: Chaos): Promise<void> {
  const { mirror, world, random } = chaos
  await chaos.drain()
  chaos.note('sealed for a while')
  await mirror.stop()
  const before = world.origin.connections
  await start(chaos, true)
  for (let count = random.int(10, 30); count > 0; count -= 1) {
    await chaos.pose(chooseQuestion(chaos, random.pick(['index', 'document', 'archive'])))
  }
  if (world.origin.connections !== before) chaos.fail('a sealed mirror has connected to an origin')
  await mirror.stop()
  await start(chaos)
}

function start(chaos: Chaos, sealed = false): Promise<void> {
  return chaos.mirror.start({ sealed, aheadMs: chaos.world.timeline.aheadMs })
}
