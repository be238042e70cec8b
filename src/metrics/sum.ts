/** The sum of all series of a metric. */
export function sum({ values }: { readonly values: readonly { readonly value: number }[] }): number {
  return values.reduce((total, { value }) => total + value, 0)
}
