import type { z } from 'zod'
import type { Log } from '../log.ts'
import type { RecordKey, RecordStore } from '../store/record-store.ts'

/**
 * Reads a record. One of another shape is as good as none, and is told: the origin can give it again.
 * @throws MirrorError `STORAGE_FAILED`
 */
export async function readStoredRecord<T>(
  { records, log }: { readonly records: RecordStore; readonly log: Log },
  key: RecordKey,
  schema: z.ZodType<T>,
): Promise<T | undefined> {
  const stored = await records.get(key)
  if (stored === undefined) return undefined
  const parsed = schema.safeParse(stored)
  if (parsed.success) return parsed.data
  log.error({ record: key.join('/'), problems: parsed.error.issues.slice(0, 3) }, 'ignored an unreadable record')
  return undefined
}
