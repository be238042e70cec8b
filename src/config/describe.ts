import type { Config } from './schema.ts'

const MASK = '[secret]'
const SECRET_KEYS: readonly string[] = ['token', 'basic']

/** The configuration as it may be logged: tokens, passwords and the proxy's user-info are masked. */
export function describeConfig(config: Config): unknown {
  return JSON.parse(
    JSON.stringify(config, (key: string, value: unknown) => {
      if (SECRET_KEYS.includes(key) && typeof value === 'string') return MASK
      if (key === 'proxy' && typeof value === 'string') return maskUserInfo(value)
      return value
    }),
  )
}

function maskUserInfo(text: string): string {
  const url = URL.parse(text)
  if (url === null || (url.username === '' && url.password === '')) return text
  return `${url.protocol}//${MASK}@${url.host}${url.pathname}`
}
