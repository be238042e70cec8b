/** What is told of one thing: a name and a value, or several values, one a line. Undefined and empty ones are left out. */
export type Fact = readonly [name: string, value: string | readonly string[] | undefined]

/** Facts in two columns, one a line. */
export function formatFacts(facts: readonly Fact[]): string {
  const told = facts.flatMap(([name, value]) => {
    const values = value === undefined ? [] : typeof value === 'string' ? [value] : value
    return values.length === 0 ? [] : [{ name, values }]
  })
  const width = Math.max(0, ...told.map(({ name }) => name.length)) + 2
  return told
    .flatMap(({ name, values }) => values.map((value, index) => `${(index === 0 ? name : '').padEnd(width)}${value}\n`))
    .join('')
}
