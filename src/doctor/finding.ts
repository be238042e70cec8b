/** `warning`: works, but not as one should wish. `skipped`: could not or should not be looked at. */
export type Verdict = 'ok' | 'warning' | 'problem' | 'skipped'

/** What was found about one thing: one line for people. No text holds a secret. */
export interface Finding {
  /** What was looked at, e.g. `data folder`, `origin registry.acme.example`. */
  readonly check: string
  readonly verdict: Verdict
  /** What is so, or what is wrong and why. */
  readonly text: string
  /** What to do about it; given with every warning and problem. */
  readonly remedy?: string
}

/** Makes findings about one thing. */
export interface FindingsAbout {
  ok(text: string): Finding
  skipped(text: string): Finding
  warning(text: string, remedy: string): Finding
  problem(text: string, remedy: string): Finding
}

/** Makes findings about one thing, by its name. */
export function findingsAbout(check: string): FindingsAbout {
  return {
    ok: (text) => ({ check, verdict: 'ok', text }),
    skipped: (text) => ({ check, verdict: 'skipped', text }),
    warning: (text, remedy) => ({ check, verdict: 'warning', text, remedy }),
    problem: (text, remedy) => ({ check, verdict: 'problem', text, remedy }),
  }
}
