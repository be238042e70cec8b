import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { KeyPath } from './schema-path.ts'

const MAX_FILE_BYTES = 1_000_000
const PLACEHOLDER = /\$?\$\{([^}]*)(\}?)/g

/** Where placeholders take their values from. */
export interface InterpolationSource {
  readonly env: NodeJS.ProcessEnv
  /** Relative paths of `${file:PATH}` are resolved against it. */
  readonly folder: string
  /** Called for each placeholder without a value. */
  readonly report: (path: KeyPath, problem: string) => void
}

/**
 * Replaces `${env:NAME}` and `${file:PATH}` in every string of a document of maps, lists and scalars; keys stay as they
 * are. A file's last line break is dropped. What comes in is not looked at again. `$${` stands for `${` itself.
 */
export async function interpolate(value: unknown, source: InterpolationSource, path: KeyPath = []): Promise<unknown> {
  if (typeof value === 'string') return interpolateText(value, source, path)
  if (Array.isArray(value)) {
    return Promise.all(value.map((item: unknown, index) => interpolate(item, source, [...path, index])))
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(
    async ([key, item]: [string, unknown]) => [key, await interpolate(item, source, [...path, key])] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

async function interpolateText(text: string, source: InterpolationSource, path: KeyPath): Promise<string> {
  let result = ''
  let end = 0
  for (const match of text.matchAll(PLACEHOLDER)) {
    result += text.slice(end, match.index)
    end = match.index + match[0].length
    const [whole, name = '', close] = match
    if (whole.startsWith('$$')) result += whole.slice(1)
    else if (close === '') source.report(path, 'a placeholder is not closed; write $${ for the characters ${')
    else result += await resolvePlaceholder(name, source, path)
  }
  return result + text.slice(end)
}

async function resolvePlaceholder(name: string, source: InterpolationSource, path: KeyPath): Promise<string> {
  const [, kind, argument = ''] = /^(env|file):(.+)$/s.exec(name) ?? []
  if (kind === 'env') {
    const value = source.env[argument]
    if (value === undefined) source.report(path, `environment variable ${argument} is not set`)
    if (value === '') source.report(path, `environment variable ${argument} is empty`)
    return value ?? ''
  }
  if (kind === 'file') return readPlaceholderFile(argument, source, path)
  source.report(path, `unknown placeholder; expected \${env:NAME} or \${file:PATH}, or $\${ for the characters \${`)
  return ''
}

async function readPlaceholderFile(name: string, source: InterpolationSource, path: KeyPath): Promise<string> {
  const file = resolve(source.folder, name)
  try {
    const text = await readFile(file, 'utf8')
    if (text.length <= MAX_FILE_BYTES) return text.replace(/\r?\n$/, '')
    source.report(path, `file ${file} is too large for a value`)
  } catch (error) {
    source.report(path, `file ${file} cannot be read (${errorCode(error)})`)
  }
  return ''
}

/** The system's short name of a failure, such as `ENOENT`. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown error'
}
