import { formatPlatform, type Platform } from '../protocol/platform.ts'
import type { ProviderAddress } from '../protocol/provider-address.ts'
import type { Version } from '../protocol/version.ts'

/** Path of the network mirror's base URL. */
export const NETWORK_MIRROR_BASE = '/providers/'

/**
 * Where `VERSION.json` points for an archive: relative to the document, so that it holds behind every path prefix, and
 * only unreserved characters and percent encoding (field-reports B53). Version and platform are segments of their own;
 * the file name is for people and is never parsed.
 */
export function archiveLink(address: ProviderAddress, version: Version, platform: Platform): string {
  const name = `terraform-provider-${address.type}_${version}_${formatPlatform(platform)}.zip`
  return [version, formatPlatform(platform), name].map(encodeURIComponent).join('/')
}
