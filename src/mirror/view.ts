import { MirrorError } from '../errors.ts'
import type { Hostname } from '../protocol/hostname.ts'

/**
 * What one kind of caller may see: the first argument of every use case. Today there is one constant view; tokens and
 * tenants will bring more, and keys of rendered documents carry `id` already.
 */
export interface View {
  readonly id: string
  readonly allowsOrigin: (hostname: Hostname) => boolean
}

/** @throws MirrorError `ORIGIN_NOT_ALLOWED` */
export function assertOriginAllowed(view: View, hostname: Hostname): void {
  if (view.allowsOrigin(hostname)) return
  throw new MirrorError(
    'ORIGIN_NOT_ALLOWED',
    `this mirror does not serve providers of ${hostname}; its operator can add the host to "origins"`,
    { hostname },
  )
}
