import { LRUCache } from 'lru-cache'

/** What is known of one provider from one change of it to the next. */
export interface Edition {
  /** False for ever after the next change, whatever it is. */
  readonly isCurrent: boolean
}

const MAX_PROVIDERS = 5_000

/**
 * Tells whoever keeps something that was made from what is known of a provider when it is out of date. Take the edition
 * first, then read; whoever changes something ends the edition when the change can be seen. Then nothing that was read
 * before a change is taken for current after it.
 */
export class Editions {
  readonly #current = new LRUCache<string, { isCurrent: boolean }>({
    max: MAX_PROVIDERS,
    // An edition that is forgotten could not be ended any more.
    dispose: (edition) => {
      edition.isCurrent = false
    },
  })

  /** The current edition of a provider, by its address as text. */
  of(name: string): Edition {
    const current = this.#current.get(name)
    if (current !== undefined) return current
    const edition = { isCurrent: true }
    this.#current.set(name, edition)
    return edition
  }

  /** Something about the provider has changed: a list, a check, a record. */
  end(name: string): void {
    this.#current.delete(name)
  }
}
