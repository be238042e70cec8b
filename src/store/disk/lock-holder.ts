import { readFile, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { z } from 'zod'
import { errnoOf } from './storage-error.ts'

/** The content of a lock file: which process holds a folder. */
export const LockHolder = z.object({
  pid: z.int().positive(),
  hostname: z.string(),
  /** ISO 8601. */
  since: z.string(),
  /** Random: two locks are the same only if this is. */
  token: z.string(),
  /** Of the machine, where it has one: it tells two machines of one name apart, and one machine before and after a restart. */
  bootId: z.string().optional(),
  /** When the process started, in ticks since the machine did; it tells two processes with one pid apart. */
  processStart: z.string().optional(),
  /** Device and inode of the folder: another one in a lock says that the folder is a copy. */
  folder: z.string().optional(),
})
export type LockHolder = z.infer<typeof LockHolder>

/** The process that runs this, as the holder of a new lock of `folder`. @throws bare system errors */
export async function describeThisProcess(token: string, folder: string): Promise<LockHolder> {
  const bootId = await findBootId()
  const start = (await findProcess(process.pid))?.start
  return {
    pid: process.pid,
    hostname: hostname(),
    since: new Date().toISOString(),
    token,
    folder: await identify(folder),
    ...(bootId === undefined ? {} : { bootId }),
    ...(start === undefined ? {} : { processStart: start }),
  }
}

/** The holder that a lock file names; undefined if the file is torn. */
export function parseLockHolder(text: string): LockHolder | undefined {
  try {
    return LockHolder.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** True if the holder is a process of this machine, so that `isAlive` can tell. */
export function isOnThisMachine(holder: LockHolder, us: LockHolder): boolean {
  if (holder.hostname !== us.hostname) return false
  return holder.bootId === undefined || us.bootId === undefined || holder.bootId === us.bootId
}

/** True if the process that wrote the lock still runs: there is one with its pid, and it started at the same time. */
export async function isAlive(holder: LockHolder, us: LockHolder): Promise<boolean> {
  if (!hasProcess(holder.pid)) return false
  const found = await findProcess(holder.pid)
  // A killed process whose parent has not noticed yet.
  if (found !== undefined && 'ZX'.includes(found.state)) return false
  if (found !== undefined && holder.processStart !== undefined) return found.start === holder.processStart
  // Without start times: if it has our pid, it is not the one that wrote the lock.
  return holder.pid !== us.pid
}

/** True if the lock came along when another folder was copied. */
export function isOfOtherFolder(holder: LockHolder, us: LockHolder): boolean {
  return holder.folder !== undefined && holder.folder !== us.folder
}

async function identify(folder: string): Promise<string> {
  const { dev, ino } = await stat(folder, { bigint: true })
  return `${dev}:${ino}`
}

function hasProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errnoOf(error) !== 'ESRCH'
  }
}

/** From `/proc/PID/stat` (proc_pid_stat(5), fields 3 and 22); undefined where there is none. */
async function findProcess(pid: number): Promise<{ state: string; start: string } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name of the program comes before, in parentheses, and may hold spaces and parentheses itself.
  const [state, ...rest] = text?.slice(text.lastIndexOf(')') + 2).split(' ') ?? []
  const start = rest[18]
  return state === undefined || start === undefined ? undefined : { state, start }
}

async function findBootId(): Promise<string | undefined> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined)
  return text?.trim()
}
