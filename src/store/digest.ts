import { hash } from 'node:crypto'

/** The SHA-256 of bytes that are in memory, lower-case hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex')
}

/** True for 64 lower-case hexadecimal digits. Any other text names no blob, and never becomes part of a path. */
export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}
