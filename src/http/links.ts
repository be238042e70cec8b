import type { Hostname } from '../protocol/hostname.ts'
import { formatPlatform, type Platform } from '../protocol/platform.ts'
import type { ProviderAddress } from '../protocol/provider-address.ts'
import type { DownloadLinks } from '../protocol/provider-registry.ts'
import type { Version } from '../protocol/version.ts'

/*
 * Every URL in a document of ours is relative to that document, so that it holds behind every path prefix, and is made
 * here.
 */

/** Path of the network mirror's base URL. */
export const NETWORK_MIRROR_BASE = '/providers/'
/** Path of the module registry's base URLs, one below it for each origin. */
export const MODULE_REGISTRY_BASE = '/v1/modules/'
/** Path of the provider registry's base URLs, one below it for each origin. */
export const PROVIDER_REGISTRY_BASE = '/v1/providers/'

/**
 * Where `VERSION.json` points for an archive: only unreserved characters and percent encoding (field-reports B53).
 * Version and platform are segments of their own; the file name is for people and is never parsed.
 */
export function archiveLink(address: ProviderAddress, version: Version, platform: Platform): string {
  return [version, ...archiveSegments(address, version, platform)].map(encodeURIComponent).join('/')
}

/**
 * Where the document `VERSION/download/OS/ARCH` points to. SHA256SUMS and signature go by their digests: whatever
 * happens to the release between two answers, a client gets the files that belong to its document, or none. A file that
 * the origin names and does not have is at a path that is a 404.
 */
export function downloadLinks(
  { address, version, platform }: { address: ProviderAddress; version: Version; platform: Platform },
  { sums = 'none', signature = 'none' }: { sums?: string; signature?: string },
): DownloadLinks {
  const name = `terraform-provider-${address.type}_${version}_SHA256SUMS`
  const link = (...segments: string[]): string => ['..', '..', ...segments.map(encodeURIComponent)].join('/')
  return {
    archive: link('archives', ...archiveSegments(address, version, platform)),
    sums: link('checksums', sums, name),
    signature: link('checksums', signature, `${name}.sig`),
  }
}

/**
 * What `X-Terraform-Get` says for a module: its archive, by the digest that clients then check themselves, and the folder
 * in it. The name ends as clients need it to tell the format (client-contract E4, E5, E6).
 */
export function moduleLocation({ digest, subfolder }: { digest: string; subfolder: string }): string {
  const folder = subfolder === '' ? '' : `//${subfolder}`
  return `./archives/${digest}/module.tar.gz${folder}?checksum=sha256:${digest}`
}

/** Where `/.well-known/terraform.json` points for the services of an origin. */
export function discoveryLinks(origin: Hostname): { readonly providers: string; readonly modules: string } {
  const name = encodeURIComponent(origin)
  return { providers: `../v1/providers/${name}/`, modules: `../v1/modules/${name}/` }
}

function archiveSegments(address: ProviderAddress, version: Version, platform: Platform): string[] {
  const name = `terraform-provider-${address.type}_${version}_${formatPlatform(platform)}.zip`
  return [formatPlatform(platform), name]
}
