import { randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { MirrorError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import {
  describeThisProcess,
  isAlive,
  isOfOtherFolder,
  isOnThisMachine,
  type LockHolder,
  parseLockHolder,
} from './lock-holder.ts'
import { errnoOf, unlessMissing } from './storage-error.ts'

const HEARTBEAT_MS = 10_000
/** A holder on another machine counts as gone when it has been silent for so many milliseconds. */
export const SILENT_MS = 45_000
/** A torn lock file is one that is being written, or one whose writer was killed in the middle. */
const TORN_MS = 2000
const STEP_MS = 50
const MAX_ATTEMPTS = 100
const KINDS = { dataDir: 'data folder', stateDir: 'state folder' } as const

/** What the lock needs. */
export interface FolderLockOptions {
  /** Absolute. */
  readonly folder: string
  /** What says in the configuration where it is. */
  readonly key: 'dataDir' | 'stateDir'
  readonly log: Log
  /** Called once when another process has taken the folder: this one must stop writing. */
  readonly onLost?: (() => void) | undefined
  /** 10,000 if not given. */
  readonly heartbeatMs?: number
}

interface SeenLock {
  readonly text: string
  readonly ageMs: number
}

/**
 * The lock of a data folder or a state folder: one process writes it. The file `lock` names the holder. A process of this machine that
 * is gone loses it at once; one of another machine (a shared volume) when its heartbeat, the time of the file, is older
 * than 45 seconds, and so does one that came along when the folder was copied. The clocks of such machines must agree
 * better than that.
 */
export class FolderLock implements AsyncDisposable {
  readonly #file: string
  readonly #text: string
  readonly #options: FolderLockOptions
  readonly #timer: NodeJS.Timeout
  #beat: Promise<void> | undefined
  #ended = false

  private constructor(file: string, text: string, options: FolderLockOptions) {
    this.#file = file
    this.#text = text
    this.#options = options
    this.#timer = setInterval(() => this.#startBeat(), options.heartbeatMs ?? HEARTBEAT_MS).unref()
  }

  /**
   * Takes the lock. The caller releases it by disposing.
   * @throws MirrorError `CONFIGURATION` if another process holds it. Else bare system errors.
   */
  static async acquire(options: FolderLockOptions): Promise<FolderLock> {
    const file = join(options.folder, 'lock')
    const us = await describeThisProcess(randomUUID(), options.folder)
    const text = `${JSON.stringify(us, null, 2)}\n`
    let contended = false
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      // Who judged the old lock when we did may have moved ours away by mistake, and is about to put it back.
      if ((await createLock(file, text)) && contended) await delay(STEP_MS)
      const seen = await readLock(file)
      if (seen?.text === text) return new FolderLock(file, text, options)
      contended = true
      if (seen === undefined) continue
      if (await isStale(seen, us, options)) await takeAway(seen, file, options)
      else await delay(STEP_MS)
    }
    const message = `Cannot lock ${KINDS[options.key]} ${options.folder}: others try at the same time.`
    throw new MirrorError('CONFIGURATION', message, { key: options.key })
  }

  /** Removes the lock if it is still ours. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return
    this.#end()
    await this.#beat
    if ((await readLock(this.#file))?.text === this.#text) await rm(this.#file, { force: true })
  }

  get #kind(): string {
    return KINDS[this.#options.key]
  }

  #end(): void {
    this.#ended = true
    clearInterval(this.#timer)
  }

  #startBeat(): void {
    this.#beat ??= this.#heartbeat()
      .catch((error: unknown) => this.#options.log.warn({ err: error }, `cannot renew the lock of the ${this.#kind}`))
      .finally(() => {
        this.#beat = undefined
      })
  }

  async #heartbeat(): Promise<void> {
    // Three looks: a starter that moved our lock by mistake puts it back in between.
    for (let look = 0; look < 3; look += 1) {
      if (await this.#renew()) return
      await delay(STEP_MS * 2)
    }
    if (this.#ended) return
    // Nobody took it, it was only removed.
    if (await createLock(this.#file, this.#text)) {
      this.#options.log.warn({ lock: this.#file }, `the lock of the ${this.#kind} was gone: written again`)
      return
    }
    if (await this.#renew()) return
    this.#end()
    const holder = (await readLock(this.#file))?.text
    this.#options.log.fatal({ lock: this.#file, holder }, `another process has taken the ${this.#kind}`)
    this.#options.onLost?.()
  }

  /** False if the lock is not ours at this moment. */
  async #renew(): Promise<boolean> {
    if ((await readLock(this.#file))?.text !== this.#text) return false
    const now = new Date()
    await unlessMissing(utimes(this.#file, now, now), undefined)
    return true
  }
}

/** False if there is one already. */
async function createLock(file: string, text: string): Promise<boolean> {
  try {
    const handle = await open(file, 'wx', 0o640)
    try {
      await handle.writeFile(text)
    } catch (error) {
      await rm(file, { force: true })
      throw error
    } finally {
      await handle.close()
    }
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

async function readLock(file: string): Promise<SeenLock | undefined> {
  const text = await unlessMissing(readFile(file, 'utf8'), undefined)
  const facts = await unlessMissing(stat(file), undefined)
  if (text === undefined || facts === undefined) return undefined
  return { text, ageMs: Date.now() - facts.mtimeMs }
}

/** @throws MirrorError `CONFIGURATION` if the holder is at work. */
async function isStale(seen: SeenLock, us: LockHolder, { folder, key }: FolderLockOptions): Promise<boolean> {
  const holder = parseLockHolder(seen.text)
  if (holder === undefined) return seen.ageMs > TORN_MS
  const here = isOnThisMachine(holder, us)
  // The beats of the one that is alive would be seen in its own folder only. A share that is mounted twice may look the same.
  const isCopy = here && isOfOtherFolder(holder, us)
  const isSilent = seen.ageMs > SILENT_MS
  if (here && !isCopy ? !(await isAlive(holder, us)) : isSilent) return true
  const who = `process ${holder.pid} on ${holder.hostname} has written it since ${holder.since}`
  const again = `start again in ${SILENT_MS / 1000} seconds`
  const advice = isCopy
    ? `If this folder is a copy of its folder, delete the lock file, or ${again}`
    : here
      ? `Stop that process, or choose another ${key}`
      : `If that machine is gone, ${again}`
  const message = `One process at a time writes a ${KINDS[key]}, and ${who} (lock file ${join(folder, 'lock')}). ${advice}.`
  throw new MirrorError('CONFIGURATION', message, { key })
}

/** Removes exactly the lock that was seen. A rename can hit a newer one: that one is put back. */
async function takeAway(seen: SeenLock, file: string, options: FolderLockOptions): Promise<void> {
  const aside = `${file}.${randomUUID()}`
  const moved = await unlessMissing(
    rename(file, aside).then(() => true),
    false,
  )
  if (!moved) return
  if ((await readFile(aside, 'utf8')) === seen.text) {
    await rm(aside, { force: true })
    options.log.warn({ lock: file, holder: seen.text }, `took over the ${KINDS[options.key]} of a process that is gone`)
  } else {
    await rename(aside, file)
  }
}
