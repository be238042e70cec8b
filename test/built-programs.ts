import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PROJECT, writeBundle } from '../packaging/bundle.ts'
import { BUILT_PROGRAMS } from './programs.ts'

/**
 * Builds what tests start as processes, once for all of them: it starts in half the time of the sources, and is what
 * people run. Vitest calls it before the first test, and what it returns after the last one.
 */
export default async function buildPrograms(): Promise<() => Promise<void>> {
  const folder = join(PROJECT, 'node_modules', '.cache', `tested-${process.pid}`)
  await writeBundle(join(folder, 'dist'), { also: ['test/chaos/mirror-process.ts'] })
  await cp(join(PROJECT, 'package.json'), join(folder, 'package.json'))
  process.env[BUILT_PROGRAMS] = join(folder, 'dist')
  return () => rm(folder, { recursive: true, force: true })
}
