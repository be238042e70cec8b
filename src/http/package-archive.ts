import type { Context } from 'hono'
import { ArrivingArchive } from '../mirror/archive-tail.ts'
import type { Call } from '../mirror/call.ts'
import type { PackageId } from '../mirror/stock/item-name.ts'
import { headArchive, sendArchive, sendArrivingArchive, wantsWhole } from './archive-response.ts'
import type { HttpEnv } from './exchange.ts'
import type { ProviderDoorParts } from './provider-request.ts'

/** Answers GET and HEAD for the archive of one package, through whatever door. @throws MirrorError as `Mirror.openArchive` */
export async function answerPackageArchive(
  context: Context<HttpEnv>,
  { mirror, view, delivery }: ProviderDoorParts,
  { id, call }: { id: PackageId; call: Call },
): Promise<Response> {
  const rules = { trustsBareRanges: delivery === 'verified' }
  if (context.req.method === 'HEAD') return headArchive(context, await mirror.describeArchive(view, id, call), rules)
  if (!wantsWhole(context)) return sendArchive(context, await mirror.openArchive(view, id, call), rules)
  // To a client of HTTP/1.0 an answer without a length ends where the connection does, well or badly.
  const sized = context.env.incoming.httpVersion === '1.0'
  const { value, ...answer } = await mirror.followArchive(view, id, call, { sized })
  if (value instanceof ArrivingArchive) return sendArrivingArchive(context, { ...answer, value })
  return sendArchive(context, { ...answer, value }, rules)
}
