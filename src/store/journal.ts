/** Keeps small JSON entries durably in the order in which they came. Knows nothing of Terraform. One conformance suite tests every implementation. */

/**
 * When an appended entry counts as kept. `durable`: when it survives a power cut. `written`: when it survives the end of
 * this process; a power cut may take it, and all after it.
 */
export type Durability = 'durable' | 'written'

/** Entries in order. Who opened it disposes of it: that waits for what is on its way. */
export interface Journal extends AsyncDisposable {
  /**
   * Adds one entry at the end, in the order of the calls; calls that come meanwhile share one sync. Durable when it
   * resolves, unless `written` is enough. If it rejects, the entry is not in the journal, and earlier ones are.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`
   */
  append(entry: unknown, durability?: Durability): Promise<void>
  /**
   * All entries whose `append` has resolved before, first to last. What a crash has torn off the end is dropped; an
   * entry that was damaged is skipped, and told in the log.
   * @throws MirrorError `STORAGE_FAILED`
   */
  read(): AsyncIterable<unknown>
  /**
   * Puts these entries in the place of all earlier ones, atomically and durably. They are drawn while others may run;
   * what is appended meanwhile comes after them.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`; the journal is as before then
   */
  replace(entries: Iterable<unknown>): Promise<void>
}
