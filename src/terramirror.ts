#!/usr/bin/env node
import { lstatSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/*
 * What a user starts. It only prepares Node.js for the rest: code that was compiled once is read from a cache at the
 * next start. Without a cache everything works, a little later.
 */

const OLDEST_NODE = 24

/**
 * Where Node.js may keep compiled code of this user, unless NODE_COMPILE_CACHE names a place. Whoever can write there
 * can make us run their code, and the folder for temporary files is everybody's: so one that is ours alone.
 */
function findCacheFolder(): string | undefined {
  const uid = process.geteuid?.()
  const folder = join(tmpdir(), `terramirror-${uid}`)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const facts = lstatSync(folder)
    const isOurs = facts.isDirectory() && facts.uid === uid && (facts.mode & 0o022) === 0
    return isOurs ? folder : undefined
  } catch {
    return undefined
  }
}

if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
  process.stderr.write(
    `terramirror: Node.js ${process.versions.node} is too old; it needs ${OLDEST_NODE} or newer, e.g. node_modules/.bin/node of a clone\n`,
  )
  process.exit(1)
}
if (process.env.NODE_COMPILE_CACHE === undefined) {
  const folder = findCacheFolder()
  if (folder !== undefined) nodeModule.enableCompileCache(folder)
}
await import('./main.ts')
