import prettyBytes from 'pretty-bytes'
import { MirrorError } from '../../errors.ts'
import type { SpaceLimits, SpaceUse } from './space-limits.ts'

/** There is no space, and nothing that can be evicted. `pinned`: bytes that sets of pins hold. */
export function noSpace(
  { maxSize, minFree }: SpaceLimits,
  { used, reserved, free }: SpaceUse,
  pinned: number,
): MirrorError<'STORAGE_FULL'> {
  const facts = [
    ...(maxSize === undefined
      ? []
      : [
          `archives.maxSize is ${prettyBytes(maxSize)}, of which ${prettyBytes(used)} are used and ${prettyBytes(reserved)} reserved by downloads`,
        ]),
    ...(minFree === undefined
      ? []
      : [`archives.minFree is ${prettyBytes(minFree)}, and the disk has ${prettyBytes(free)} free`]),
  ]
  return full(
    `There is no space left: ${facts.join('; ')}. Nothing more can be evicted now: ${prettyBytes(pinned)} are pinned, the rest is in use or evidence. Delete sets of pins, raise the limit, or make the disk larger.`,
  )
}

/** More than everything together may take. `bytes`: how much, if that is known. */
export function tooLarge(maxSize: number, bytes?: number): MirrorError<'STORAGE_FULL'> {
  const size = bytes === undefined ? 'This is larger than' : `This has ${prettyBytes(bytes)}, more than`
  return full(`${size} everything together may take: archives.maxSize is ${prettyBytes(maxSize)}. Raise it.`)
}

/** More than the disk has, whatever is evicted. */
export function tooLargeForDisk(minFree: number, bytes: number): MirrorError<'STORAGE_FULL'> {
  return full(
    `This has ${prettyBytes(bytes)}, for which the disk has no room, whatever is evicted: archives.minFree keeps ${prettyBytes(minFree)} free. Make the disk larger, or lower the limit.`,
  )
}

function full(message: string): MirrorError<'STORAGE_FULL'> {
  return new MirrorError('STORAGE_FULL', message, { operation: 'reserve' })
}
