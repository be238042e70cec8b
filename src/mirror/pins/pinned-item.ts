import { MirrorError, redactInput } from '../../errors.ts'
import { formatModuleAddress, parseModuleAddressText } from '../../protocol/module-address.ts'
import { formatPlatform, parsePlatform } from '../../protocol/platform.ts'
import { formatProviderAddress, parseProviderAddressText } from '../../protocol/provider-address.ts'
import { parseVersion } from '../../protocol/version.ts'

/**
 * The one spelling of what may be pinned: the name of a held item (`HOST/NAMESPACE/TYPE VERSION OS_ARCH`,
 * `HOST/NAMESPACE/NAME/SYSTEM VERSION`), or the beginning of one, which stands for all that begins so.
 * @throws MirrorError `HOSTILE_INPUT`, `INVALID_ADDRESS`
 */
export function parsePinnedItem(text: string): string {
  const [address = '', version, platform, ...rest] = text.trim().split(/ +/, 4)
  const isModule = address.split('/').length === 4
  if (rest.length > 0 || (isModule && platform !== undefined)) throw invalid(text, 'it has too many parts')
  const name = isModule
    ? formatModuleAddress(parseModuleAddressText(address))
    : formatProviderAddress(parseProviderAddressText(address))
  if (version === undefined) return name
  const canonical = parseVersion(version)
  if (canonical === undefined) throw invalid(text, `${JSON.stringify(version)} is no version`)
  return [name, canonical, ...(platform === undefined ? [] : [formatPlatform(parsePlatform(platform))])].join(' ')
}

/** What may be pinned to hold an item: its name, and every shorter form of it. */
export function pinnableForms(item: string): string[] {
  const parts = item.split(' ')
  return parts.map((_, index) => parts.slice(0, index + 1).join(' '))
}

function invalid(text: string, reason: string): MirrorError<'INVALID_ADDRESS'> {
  const input = redactInput(text)
  const message = `not the name of an item: ${JSON.stringify(input)}: ${reason}`
  const hint = 'write HOST/NAMESPACE/TYPE VERSION OS_ARCH, or HOST/NAMESPACE/NAME/SYSTEM VERSION for a module'
  return new MirrorError('INVALID_ADDRESS', message, { input, reason, hint })
}
