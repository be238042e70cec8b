import { createHash, timingSafeEqual } from 'node:crypto'

/** The token that opens the admin API. It never shows itself. */
export class BearerToken {
  /** Where it comes from, for the audit: `admin.token`, `admin-token`. */
  readonly name: string
  readonly #hash: Buffer

  constructor(token: string, name: string) {
    this.#hash = sha256(token)
    this.name = name
  }

  /** True for the header `Bearer TOKEN` with this token. Takes the same time whatever is wrong with it. */
  matches(authorization: string | undefined): boolean {
    const [, given = ''] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? []
    return timingSafeEqual(sha256(given), this.#hash)
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
