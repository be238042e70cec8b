import type { Config } from './config/schema.ts'
import { Manual } from './http/manual.ts'
import type { PageParts } from './http/page-routes.ts'
import type { StoredBytes } from './mirror/space/stored-bytes.ts'
import type { Inventory } from './mirror/stock/inventory.ts'
import type { TlsIdentity } from './tls/tls-identity.ts'
import { createPage } from './ui/page.ts'
import type { CacheUsage } from './ui/state-line.ts'

/** The documentation, which lies beside `src` and beside `dist`. */
const MANUAL = new URL('../docs/', import.meta.url)

/** What people are shown: the folders `http` and `ui` meet here alone. */
export async function createPageParts(
  { config, version }: { config: Config; version: string },
  parts: { inventory: Inventory; stored: StoredBytes; identity: TlsIdentity | undefined },
): Promise<PageParts> {
  const { inventory, stored, identity } = parts
  const { mode, publicUrl } = config
  const manual = await Manual.open(MANUAL)
  const authorityPem = (): string | undefined => identity?.authorityPem?.()
  const origins = Object.entries(config.origins).map(
    ([
      host,
      {
        verification: { signatures },
      },
    ]) => ({ host, signatures }),
  )
  const usage = (): CacheUsage => ({
    packages: inventory.isComplete ? inventory.count('package') : undefined,
    bytes: stored.isMeasured ? stored.sum.size : undefined,
  })
  const renderPage = createPage({ version, mode, origins, usage, authorityPem, manual: manual.pages })
  return { renderPage, manual, authorityPem, publicUrl }
}
