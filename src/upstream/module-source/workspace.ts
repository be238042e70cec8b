/** A folder for the work on one module. Disposing removes it with all that is in it. */
export interface Workspace extends AsyncDisposable {
  /** Absolute; ours alone. */
  readonly path: string
  /**
   * Runs work that reads and writes here. What the file system refuses becomes an error of ours.
   * @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED`; whatever else `work` throws
   */
  run<T>(work: () => Promise<T>): Promise<T>
}

/** Makes folders to work in; what a killed process leaves of them is removed at the next start. */
export interface Workspaces {
  /** The caller disposes of it. @throws MirrorError `STORAGE_FULL`, `STORAGE_FAILED` */
  create(): Promise<Workspace>
}
