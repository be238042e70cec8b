import type { ArchiveStream } from './provider-upstream.ts'

/** How to ask for a document. */
export interface DocumentRequest {
  /** Absolute URL, https (or http where the origin allows it). */
  readonly url: string | URL
  /** Ends the work, all retries and redirects included. */
  readonly signal: AbortSignal
  readonly hops: readonly string[]
  /** `Accept` header; default `application/json`. */
  readonly accept?: string
  /** Limit of the decoded body in bytes. */
  readonly maxBytes: number
  /** How many redirects are followed; default 5. */
  readonly maxRedirects?: number
  /**
   * Send the origin's own token to this URL's host although it is not the origin's host: the URL is a service that the
   * origin's discovery document names (client-contract D5). Never follows a redirect to another host.
   */
  readonly trusted?: boolean
}

/** An answer with its whole body, whatever its status. */
export interface DocumentAnswer {
  /** After redirects. May carry a secret query. */
  readonly url: URL
  readonly status: number
  /** Lower-case media type without parameters; empty if none was sent. */
  readonly mediaType: string
  /** The header `X-Terraform-Get`, by which registries say where a module's files are. */
  readonly terraformGet: string | undefined
  readonly body: Buffer
}

/** How to ask for an archive. */
export interface ArchiveRequest {
  readonly url: string | URL
  readonly signal: AbortSignal
  readonly hops: readonly string[]
  readonly maxBytes: number
  /** As for a document: the origin itself wants its token sent to this URL's host. */
  readonly trusted?: boolean
}

/**
 * Talks to one origin and to the hosts that its documents point to, under that origin's rules: guarded connections,
 * proxy, extra CAs, time and byte limits, retries with back-off, credentials that never cross hosts.
 */
export interface OriginClient {
  /**
   * Fetches a small document. Answers of every status are returned, except those that mean an outage or a limit, which
   * are retried and then thrown: 408, 429, 5xx, and 403 with an exhausted rate limit.
   * @throws MirrorError `UPSTREAM_UNREACHABLE`, `UPSTREAM_TLS`, `UPSTREAM_TIMEOUT`, `UPSTREAM_STATUS` (5xx, 408),
   *   `UPSTREAM_RATE_LIMITED`, `UPSTREAM_TOO_LARGE`, `UPSTREAM_REFUSED`, `UPSTREAM_INVALID` (broken encoding, bad redirect)
   */
  fetchDocument(request: DocumentRequest): Promise<DocumentAnswer>

  /**
   * Opens an archive: status 200 was seen and headers are in. Torn bodies, stalls and rates under the minimum are
   * resumed by Range where the upstream can, else restarted, a bounded number of times.
   * @throws MirrorError as above, `UPSTREAM_STATUS` for every status but 200; also while iterating
   */
  openArchive(request: ArchiveRequest): Promise<ArchiveStream>

  /** Closes all connections, the running ones too. */
  close(): Promise<void>
}
