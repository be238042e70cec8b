/** What the admin API tells those who count. Metrics implement it. Methods never throw. */
export interface AdminObserver {
  /** A request was answered; `route` is the template, never the path itself. */
  adminAnswered(answer: { readonly route: string; readonly status: number; readonly seconds: number }): void
  /** A request came without a token, or with a wrong one. */
  tokenRefused(reason: 'missing' | 'wrong'): void
  /** A change was made that the audit log could not take. */
  auditFailed(): void
}
