/** A process that appends numbers for ever, a few at a time, and prints each one that is durable: `journal-child.ts FOLDER`. */
import { silentLog } from '../../src/log.ts'
import { openStateFolder } from '../../src/store/disk/state-folder.ts'

const [stateDir = ''] = process.argv.slice(2)
const state = await openStateFolder({ stateDir, log: silentLog() })
const journal = await state.journal('j')
let next = (await Array.fromAsync(journal.read())).length

async function append(): Promise<void> {
  const n = next++
  await journal.append({ n, pad: 'x'.repeat(n % 3_000) })
  process.stdout.write(`${n}\n`)
}

for (;;) await Promise.all(Array.from({ length: 5 }, append))
