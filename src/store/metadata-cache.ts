/**
 * What may be lost: lists, discovery documents, negative answers. A failure of the cache is a miss, never an error;
 * it is logged. Freshness is the caller's business: entries carry their own times (Keyv's TTL would delete what we
 * still want to serve stale).
 */
export interface MetadataCache {
  get(key: string): Promise<unknown>
  set(key: string, value: unknown): Promise<void>
  delete(key: string): Promise<void>
}
