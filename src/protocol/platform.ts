import { MirrorError } from '../errors.ts'

/** An operating system and an architecture in Go's names, e.g. `linux` and `amd64`. Open sets: any word is accepted. */
export interface Platform {
  readonly os: string
  readonly arch: string
}

const WORD = /^[a-z0-9]{1,32}$/

/**
 * Parses `linux_amd64`. Letter case is not folded: clients send lower case only.
 * @throws MirrorError `INVALID_ADDRESS`
 */
export function parsePlatform(text: string): Platform {
  const platform = parsePlatformName(text)
  if (platform === undefined) {
    throw new MirrorError('INVALID_ADDRESS', `not a platform: ${JSON.stringify(text.slice(0, 80))}; expected OS_ARCH`, {
      input: text.slice(0, 80),
      reason: 'expected OS_ARCH',
    })
  }
  return platform
}

/** The platform of two values out of a document, or undefined if one of them is not a word. */
export function toPlatform(os: unknown, arch: unknown): Platform | undefined {
  const words = typeof os === 'string' && typeof arch === 'string' && WORD.test(os) && WORD.test(arch)
  return words ? { os, arch } : undefined
}

/** As `parsePlatform`; undefined for any other text. */
export function parsePlatformName(text: string): Platform | undefined {
  const [os, arch, ...rest] = text.split('_', 3)
  return rest.length > 0 ? undefined : toPlatform(os, arch)
}

/** Prints `linux_amd64`; the inverse of `parsePlatform`. */
export function formatPlatform(platform: Platform): string {
  return `${platform.os}_${platform.arch}`
}
