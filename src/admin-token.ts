import { randomBytes } from 'node:crypto'
import { BearerToken } from './admin/bearer-token.ts'
import { MirrorError } from './errors.ts'
import { PrivateFolder } from './tls/private-folder.ts'

/** In `stateDir`. */
export const ADMIN_TOKEN_FILE = 'admin-token'

/**
 * The token of the admin API: the configured one, else that of `stateDir/admin-token` (0600), which is made if it is
 * missing, so that commands of the same user find it. The folder is there.
 * @throws MirrorError `CONFIGURATION` if the file holds no token; `STORAGE_FULL`, `STORAGE_FAILED`
 */
export async function openAdminToken(configured: string | undefined, stateDir: string): Promise<BearerToken> {
  if (configured !== undefined) return new BearerToken(configured, 'admin.token')
  const folder = new PrivateFolder(stateDir, 'the token of the admin API is')
  const held = (await folder.read(ADMIN_TOKEN_FILE))?.trim()
  if (held !== undefined && !/^[\x21-\x7e]+$/.test(held)) {
    const message = `${folder.file(ADMIN_TOKEN_FILE)} holds no token; delete it, and a new one is made`
    throw new MirrorError('CONFIGURATION', message, { key: 'admin.token' })
  }
  const token = held ?? randomBytes(32).toString('base64url')
  await folder.write(ADMIN_TOKEN_FILE, `${token}\n`, 0o600)
  return new BearerToken(token, ADMIN_TOKEN_FILE)
}
