import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** What a folder holds: text of a file, `{ run }` for an executable one, `{ link }` for a link. */
export type Files = Readonly<Record<string, string | { readonly run: string } | { readonly link: string }>>

/** A folder with files, for the real tar, zip and git to work on. Disposing removes it. */
export class SourceFolder implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async make(files: Files = {}): Promise<SourceFolder> {
    const folder = new SourceFolder(await mkdtemp(join(tmpdir(), 'terramirror-module-')))
    await folder.write(files)
    return folder
  }

  async write(files: Files): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.path, name)
      await mkdir(dirname(path), { recursive: true })
      if (typeof content === 'string') await writeFile(path, content)
      else if ('link' in content) await symlink(content.link, path)
      else {
        await writeFile(path, content.run)
        await chmod(path, 0o755)
      }
    }
  }

  /** Runs a command here; returns its output. */
  run(command: string, ...args: string[]): Buffer {
    return execFileSync(command, args, { cwd: this.path, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1e9 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }
}
