const BYTES = /^(\d+(?:\.\d+)?) ?(?:(k|M|G|T)(i?))?B$/
const TIME = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|d)$/
const PREFIXES = ['', 'k', 'M', 'G', 'T']
const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Bytes from a size as the configuration writes it: a number and a unit, `20GB` (powers of 1000) or `20GiB` (powers of
 * 1024), case as in the SI. Undefined for anything else, a number without a unit included.
 */
export function parseSize(text: string): number | undefined {
  const [, number, prefix = '', binary] = BYTES.exec(text) ?? []
  if (number === undefined) return undefined
  return toSafeInteger(Number(number) * (binary === 'i' ? 1024 : 1000) ** PREFIXES.indexOf(prefix))
}

/**
 * Milliseconds from a time as the configuration writes it: a number and one of `ms`, `s`, `m` (minutes), `h`, `d`.
 * Undefined for anything else, a number without a unit included.
 */
export function parseTime(text: string): number | undefined {
  const [, number, unit = ''] = TIME.exec(text) ?? []
  if (number === undefined) return undefined
  return toSafeInteger(Number(number) * (MILLISECONDS[unit] ?? Number.NaN))
}

function toSafeInteger(value: number): number | undefined {
  const whole = Math.round(value)
  return Number.isSafeInteger(whole) ? whole : undefined
}
