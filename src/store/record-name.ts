import { MirrorError } from '../errors.ts'

const MAX_CHARACTERS = 180

/** Asserts that a name of a record key is text without NUL, not empty, and not too long. @throws MirrorError `STORAGE_FAILED` */
export function assertRecordName(name: string): void {
  if (name.length > 0 && name.length <= MAX_CHARACTERS && !name.includes('\0') && name.isWellFormed()) return
  const reason = `a name of a record has 1 to ${MAX_CHARACTERS} characters and no NUL`
  throw new MirrorError('STORAGE_FAILED', `Cannot use ${JSON.stringify(name.slice(0, MAX_CHARACTERS))}: ${reason}.`, {
    operation: 'name a record',
  })
}

/** Asserts that a key names a record: one name or more, each of them good. @throws MirrorError `STORAGE_FAILED` */
export function assertRecordKey(key: readonly string[]): void {
  if (key.length === 0) assertRecordName('')
  for (const name of key) assertRecordName(name)
}
