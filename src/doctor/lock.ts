import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SILENT_MS } from '../store/disk/folder-lock.ts'
import {
  describeThisProcess,
  isAlive,
  isOfOtherFolder,
  isOnThisMachine,
  parseLockHolder,
} from '../store/disk/lock-holder.ts'
import { type Finding, findingsAbout } from './finding.ts'

/** Who writes the data folder. `elsewhere`: a process of another machine or container. */
export type LockState =
  | { readonly kind: 'free' }
  | { readonly kind: 'running' | 'elsewhere' | 'stale'; readonly holder: string }

/** Reads the lock of a data folder, without touching it. */
export async function findLockState(dataDir: string): Promise<LockState> {
  const file = join(dataDir, 'lock')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  const facts = await stat(file).catch(() => undefined)
  if (text === undefined || facts === undefined) return { kind: 'free' }
  const holder = parseLockHolder(text)
  if (holder === undefined) return { kind: 'stale', holder: `nobody: ${file} is torn` }
  const name = `process ${holder.pid} on ${holder.hostname}, since ${holder.since}`
  const us = await describeThisProcess('', dataDir)
  if (isOnThisMachine(holder, us) && !isOfOtherFolder(holder, us))
    return { kind: (await isAlive(holder, us)) ? 'running' : 'stale', holder: name }
  return { kind: Date.now() - facts.mtimeMs > SILENT_MS ? 'stale' : 'elsewhere', holder: name }
}

/** Whether a mirror can write here, or one does. */
export function judgeLock(dataDir: string, state: LockState): Finding {
  const about = findingsAbout('lock')
  if (state.kind === 'free') return about.ok('nobody holds it: the mirror does not run')
  if (state.kind === 'running') return about.ok(`the mirror runs: ${state.holder}`)
  if (state.kind === 'stale') {
    return about.warning(
      `held by ${state.holder}, which is gone: it was killed, or its machine stopped`,
      'Nothing to do: the next start takes it over.',
    )
  }
  return about.problem(
    `another machine or container writes ${dataDir}: ${state.holder}`,
    'One process at a time writes a data folder: stop that one, or choose another dataDir here.',
  )
}
