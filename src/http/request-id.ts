import { randomBytes, randomUUID } from 'node:crypto'

/** A fresh prefix before the counter could come round. */
const IDS_PER_PREFIX = 0x1_0000_0000

let prefix = ''
let start = 0
let count = IDS_PER_PREFIX

/**
 * An id in the form of a UUID that no other request has, here or elsewhere: the first three quarters are random, the last
 * counts. It is no secret; fresh randomness for each request measured as the dearest part of a short answer.
 */
export function nextRequestId(): string {
  if (count === IDS_PER_PREFIX) {
    prefix = randomUUID().slice(0, -8)
    start = randomBytes(4).readUInt32BE()
    count = 0
  }
  const number = (start + count++) % IDS_PER_PREFIX
  return prefix + (number + IDS_PER_PREFIX).toString(16).slice(1)
}
