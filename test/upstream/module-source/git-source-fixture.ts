import { type Files, SourceFolder } from './archive-fixture.ts'

const AUTHOR = {
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@example.test',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@example.test',
}

/** A git repository that a test writes. Disposing removes it. */
export class GitRepository implements AsyncDisposable {
  readonly folder: SourceFolder

  private constructor(folder: SourceFolder) {
    this.folder = folder
  }

  /** An empty one, with the branch `main`. */
  static async make(): Promise<GitRepository> {
    const repository = new GitRepository(await SourceFolder.make())
    repository.git('init', '--quiet', '--initial-branch=main')
    repository.git('config', 'uploadpack.allowReachableSHA1InWant', 'true')
    for (const [key, value] of Object.entries({ 'user.name': 'a', 'user.email': 'a@example.test' })) {
      repository.git('config', key, value)
    }
    return repository
  }

  /** Writes files and commits everything; returns the commit's id. */
  async commit(files: Files, { tag, annotated }: { tag?: string; annotated?: string } = {}): Promise<string> {
    await this.folder.write(files)
    this.git('add', '--all')
    this.git('commit', '--quiet', '--allow-empty', '-m', 'change')
    if (tag !== undefined) this.git('tag', tag)
    if (annotated !== undefined) this.git('tag', '-a', annotated, '-m', 'release')
    return this.git('rev-parse', 'HEAD')
  }

  /** Runs git here; returns what it prints. */
  git(...args: string[]): string {
    return this.folder
      .run('env', ...Object.entries(AUTHOR).map(([key, value]) => `${key}=${value}`), 'git', ...args)
      .toString()
      .trim()
  }

  get path(): string {
    return this.folder.path
  }

  /** `git::file://…`, as a source. */
  source(query = ''): string {
    return `git::file://${this.path}${query}`
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]()
  }
}
