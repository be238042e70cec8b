import { z } from 'zod'
import { readJsonVector } from '../protocol/vectors.ts'

/*
 * `vectors/client-behaviour`: what the real Terraform 1.11.4 made of answers of a network mirror, good and bad.
 */

const hashCase = z.object({
  case: z.string(),
  /** A zip of `archives/provider-zip`. */
  archive: z.string(),
  mirror_hashes: z.array(z.string()).nullable(),
  archive_url: z.string(),
  content_type: z.string(),
  mirror_base: z.string(),
  preexisting_lock_hashes: z.array(z.string()),
  rc: z.int(),
  lock_hashes_after: z.array(z.string()),
  requests: z.array(z.string()),
})
const protocolCase = z.object({ case: z.string(), rc: z.int(), requests: z.array(z.string()) })
const recording = z.object({ hash_and_url_cases: z.array(hashCase), protocol_cases: z.array(protocolCase) })

/** A case about hashes, URLs and media types, with the answer that the client got. */
export type HashCase = z.output<typeof hashCase>
/** A case about statuses, versions and the like: its name, what came of it, and the requests. */
export type ProtocolCase = z.output<typeof protocolCase>

/** Every case of the recording. */
export interface RecordedCases {
  readonly hashCases: readonly HashCase[]
  readonly protocolCases: readonly ProtocolCase[]
}

/** Reads the recording. */
export function readRecordedCases(): RecordedCases {
  const recorded = recording.parse(readJsonVector('client-behaviour/terraform-1.11.4-network-mirror.json'))
  return { hashCases: recorded.hash_and_url_cases, protocolCases: recorded.protocol_cases }
}
