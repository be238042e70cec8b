import { constants } from 'node:os'
import { expect, test } from 'vitest'
import { MirrorError } from '../../src/errors.ts'
import { storageError } from '../../src/store/disk/storage-error.ts'

const failure = (code: string, errno: number): Error => Object.assign(new Error(code), { code, errno: -errno })

test.each([
  ['ENOSPC', constants.errno.ENOSPC, 'STORAGE_FULL', 'the disk is full'],
  // What Node gives for a reached quota.
  ['Unknown system error -122', constants.errno.EDQUOT, 'STORAGE_FULL', 'the quota is used up'],
  ['EIO', constants.errno.EIO, 'STORAGE_FAILED', 'EIO'],
  ['EACCES', constants.errno.EACCES, 'STORAGE_FAILED', 'EACCES'],
])('%s is told as what it is, with operation and path', (code, errno, expected, why) => {
  const cause = failure(code, errno)
  const error = storageError('write', '/data/x', cause)
  expect(error).toMatchObject({
    code: expected,
    message: `Cannot write /data/x: ${why}.`,
    fields: { operation: 'write' },
  })
  expect(error.cause).toBe(cause)
})

test('an error of ours passes through', () => {
  const error = new MirrorError('STORAGE_FULL', 'full', { operation: 'write' })
  expect(storageError('commit', '/data/x', error)).toBe(error)
})
