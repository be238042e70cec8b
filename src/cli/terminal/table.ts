/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  /** Numbers stand at the right. */
  readonly align?: 'right'
  readonly cell: (row: Row) => string
}

/** Text in columns, which come page by page: they grow wider with what comes, and never narrower. */
export class Table<Row> {
  readonly #columns: readonly Column<Row>[]
  readonly #widths: number[]
  #hasTitles = false

  constructor(columns: readonly Column<Row>[]) {
    this.#columns = columns
    this.#widths = columns.map(({ title }) => title.length)
  }

  /** The lines of these rows; before the first ones, the line of titles. Empty for no rows. */
  format(rows: readonly Row[]): string {
    if (rows.length === 0) return ''
    const lines = rows.map((row) => this.#columns.map(({ cell }) => cell(row).replaceAll('\n', ' ')))
    for (const cells of lines) {
      for (const [index, cell] of cells.entries()) {
        this.#widths[index] = Math.max(this.#widths[index] ?? 0, lengthOf(cell))
      }
    }
    if (!this.#hasTitles) lines.unshift(this.#columns.map(({ title }) => title))
    this.#hasTitles = true
    return lines.map((cells) => `${this.#formatLine(cells)}\n`).join('')
  }

  #formatLine(cells: readonly string[]): string {
    const padded = cells.map((cell, index) => {
      const space = ' '.repeat(Math.max(0, (this.#widths[index] ?? 0) - lengthOf(cell)))
      return this.#columns[index]?.align === 'right' ? space + cell : cell + space
    })
    return padded.join('  ').trimEnd()
  }
}

function lengthOf(text: string): number {
  return Array.from(text).length
}
