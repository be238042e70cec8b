import { type HeldModule, type HeldPackage, ModulePage, PackagePage } from '../admin/schema/stock.ts'
import type { AdminClient } from './api/client.ts'
import { CommandError } from './command-error.ts'
import { formatItem, type Item } from './item.ts'

/** Everything held that an item names. A provider's packages, or a module's versions; both perhaps empty. */
export interface HeldItems {
  readonly packages: readonly HeldPackage[]
  readonly modules: readonly HeldModule[]
}

/** Asks the mirror for all that it holds of an item. @throws CommandError */
export async function findHeld(client: AdminClient, item: Item): Promise<HeldItems> {
  return item.kind === 'provider'
    ? { packages: await findPackages(client, item), modules: [] }
    : { packages: [], modules: await findModules(client, item) }
}

/**
 * The one origin of these things, which the item itself may not name.
 * @throws CommandError if nothing is held, or things of several origins
 */
export function soleOrigin(item: Item, { packages, modules }: HeldItems): string {
  const origins = [...new Set([...packages, ...modules].map(({ origin }) => origin))]
  const [origin] = origins
  if (origin === undefined) throw new CommandError(`nothing is held of ${formatItem(item)}`)
  if (origins.length === 1) return origin
  const choices = origins.map((host) => formatItem({ ...item, origin: host })).join(' or ')
  throw new CommandError(`${formatItem(item)} is held from ${origins.length} origins; say ${choices}`, { exitCode: 2 })
}

async function findPackages(client: AdminClient, item: Item & { kind: 'provider' }): Promise<HeldPackage[]> {
  const { origin, namespace, type, version, platform } = item
  const query = { origin, namespace, type, limit: 500 }
  const found: HeldPackage[] = []
  for await (const page of client.pages({ path: ['packages'], query, schema: PackagePage })) {
    found.push(
      ...page.items.filter(
        (held) =>
          (version === undefined || held.version === version) && (platform === undefined || held.platform === platform),
      ),
    )
  }
  return found
}

async function findModules(client: AdminClient, item: Item & { kind: 'module' }): Promise<HeldModule[]> {
  const { origin, namespace, name, targetSystem, version } = item
  const query = { origin, namespace, name, type: targetSystem, limit: 500 }
  const found: HeldModule[] = []
  for await (const page of client.pages({ path: ['modules'], query, schema: ModulePage })) {
    found.push(...page.items.filter((held) => version === undefined || held.version === version))
  }
  return found
}
