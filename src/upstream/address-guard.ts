import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * `public`: global unicast. `private`: an address of a network of one's own, which an origin's configuration may
 * permit. `forbidden`: never the address of an origin (link-local, metadata services, multicast, reserved, …).
 */
export type AddressClass = 'public' | 'private' | 'forbidden'

/** The connection guard refused an address. `reason` names it, for people. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  readonly reason: string

  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}

/** Instance metadata services of clouds that do not stand in the link-local ranges. */
const metadataAddresses = new Set([
  '100.100.100.200', // Alibaba Cloud
  '168.63.129.16', // Azure
  'fd00:ec2::254', // AWS
  'fd20:ce::254', // Google Cloud
])

const privateRanges = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat'])

/**
 * Classifies an IP address, IPv4 or IPv6. IPv6 addresses that stand for an IPv4 address (mapped, NAT64, 6to4) are what
 * that address is.
 */
export function classifyAddress(address: string): AddressClass {
  if (isIP(address) === 0) return 'forbidden'
  return classify(ipaddr.parse(address))
}

/** Why an origin may not be reached at this address of `host`, or undefined if it may. */
export function findRefusal(host: string, address: string, allowPrivate: boolean): AddressRefused | undefined {
  const addressClass = classifyAddress(address)
  if (addressClass === 'public' || (addressClass === 'private' && allowPrivate)) return undefined
  const subject = host === address ? address : `${host} resolves to ${address}, which`
  if (addressClass === 'forbidden') return new AddressRefused(`${subject} is never the address of an origin`)
  return new AddressRefused(`${subject} is not a public address, and the origin does not set allowPrivateAddresses`)
}

function classify(address: ipaddr.IPv4 | ipaddr.IPv6): AddressClass {
  const embedded = address instanceof ipaddr.IPv6 ? embeddedIpv4(address) : undefined
  if (embedded !== undefined) return classify(embedded)
  if (metadataAddresses.has(address.toString())) return 'forbidden'
  const range = address.range()
  if (privateRanges.has(range)) return 'private'
  if (range !== 'unicast') return 'forbidden'
  // Only 2000::/3 is assigned as global unicast; ipaddr.js calls everything unicast that it does not know.
  if (address instanceof ipaddr.IPv6 && ((address.parts[0] ?? 0) & 0xe000) !== 0x2000) return 'forbidden'
  return 'public'
}

function embeddedIpv4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  if (address.isIPv4MappedAddress()) return address.toIPv4Address()
  const bytes = address.toByteArray()
  if (address.range() === '6to4') return new ipaddr.IPv4(bytes.slice(2, 6))
  const isNat64 = address.match(ipaddr.IPv6.parse('64:ff9b::'), 96)
  return isNat64 ? new ipaddr.IPv4(bytes.slice(12)) : undefined
}
