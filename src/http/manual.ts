import { readdir, readFile } from 'node:fs/promises'

/** The pages of the documentation that people at the mirror need, most needed first. */
const PAGES: readonly ManualPage[] = [
  { name: 'quick-start.md', title: 'Quick start' },
  { name: 'client-configuration.md', title: 'Client configuration' },
  { name: 'provider-registry-door.md', title: 'The provider registry door' },
  { name: 'modules.md', title: 'Modules' },
  { name: 'troubleshooting.md', title: 'Troubleshooting' },
  { name: 'configuration.md', title: 'Configuration' },
  { name: 'operations.md', title: 'Operations' },
  { name: 'security.md', title: 'Security model' },
  { name: 'limits.md', title: 'Limits' },
]

/** One page of the documentation. */
export interface ManualPage {
  /** Of its file. */
  readonly name: string
  readonly title: string
}

/** The documentation as it lies beside the program: Markdown, handed out as plain text. */
export class Manual {
  readonly #folder: URL
  /** Those that are there. */
  readonly pages: readonly ManualPage[]

  private constructor(folder: URL, pages: readonly ManualPage[]) {
    this.#folder = folder
    this.pages = pages
  }

  /** Looks what is there; `folder` ends with `/`. Without the folder there are no pages. */
  static async open(folder: URL): Promise<Manual> {
    const present = await readdir(folder).catch((): string[] => [])
    return new Manual(
      folder,
      PAGES.filter(({ name }) => present.includes(name)),
    )
  }

  /** Undefined unless it is one of the pages, and there. */
  async read(name: string): Promise<string | undefined> {
    if (!this.pages.some((page) => page.name === name)) return undefined
    return readFile(new URL(name, this.#folder), 'utf8').catch(() => undefined)
  }
}
