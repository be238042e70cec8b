import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

/**
 * How the disk of this process behaves. `full`: writes fail with ENOSPC after so many more bytes. `unwritable`: nothing
 * can be written (EIO). `unreadable`: nothing can be read (EIO).
 */
export type DiskFault =
  | { readonly kind: 'none' }
  | { readonly kind: 'full'; readonly bytesLeft: number }
  | { readonly kind: 'unwritable' }
  | { readonly kind: 'unreadable' }

let fault: DiskFault = { kind: 'none' }
let bytesLeft = 0

/** Sets how the disk behaves from now on. */
export function setDiskFault(next: DiskFault): void {
  fault = next
  bytesLeft = next.kind === 'full' ? next.bytesLeft : 0
}

/** Puts the faults between this process and `node:fs/promises`, for every module that imports it. */
export async function installDiskFaults(): Promise<void> {
  const probe = await fs.open('/dev/null')
  const handle = Object.getPrototypeOf(probe)
  await probe.close()
  guard(handle, 'write', beforeWrite)
  guard(handle, 'writeFile', beforeWrite)
  guard(handle, 'sync', beforeSync)
  guard(handle, 'read', beforeRead)
  guard(fs, 'writeFile', (_path, data) => beforeWrite(data))
  guard(fs, 'mkdir', beforeSync)
  guard(fs, 'rename', beforeSync)
  guard(fs, 'readFile', beforeRead)
  guard(fs, 'readdir', beforeRead)
  syncBuiltinESMExports()
}

// biome-ignore lint/suspicious/noExplicitAny: it stands before functions of every shape
function guard(target: any, name: string, before: (...parameters: any[]) => void): void {
  const real = target[name]
  // biome-ignore lint/suspicious/noExplicitAny: as above
  target[name] = async function (this: unknown, ...parameters: any[]): Promise<unknown> {
    before(...parameters)
    return real.apply(this, parameters)
  }
}

function beforeWrite(data: unknown): void {
  beforeSync()
  if (fault.kind !== 'full') return
  const bytes = typeof data === 'string' || data instanceof Uint8Array ? data.length : 0
  if (bytes > bytesLeft) throw systemError('ENOSPC', 'no space left on device')
  bytesLeft -= bytes
}

function beforeSync(): void {
  if (fault.kind === 'unwritable') throw systemError('EIO', 'i/o error')
}

function beforeRead(): void {
  if (fault.kind === 'unreadable') throw systemError('EIO', 'i/o error')
}

function systemError(code: string, text: string): Error {
  return Object.assign(new Error(`${code}: ${text}`), { code })
}
