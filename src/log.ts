import { type Logger, pino, stdSerializers } from 'pino'
import { isMirrorError } from './errors.ts'

/** What every part of Terramirror logs to: pino's interface. Passed explicitly, never a global. */
export type Log = Logger

/** How to log. */
export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `json`: one object a line. `text`: one readable line. `auto`: text on a terminal, else json. */
  readonly format: 'auto' | 'json' | 'text'
}

/** Where log lines go; each call is one whole line with its line feed. */
export interface LogSink {
  write(line: string): void
  readonly isTTY?: boolean
}

/** A log that writes to `sink`, synchronously and line by line. */
export function createLog({ level, format }: LogOptions, sink: LogSink): Log {
  const text = format === 'text' || (format === 'auto' && sink.isTTY === true)
  const destination = text ? { write: (line: string) => sink.write(formatText(line)) } : sink
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: serializeError },
    },
    destination,
  )
}

/** A log that drops everything. */
export function silentLog(): Log {
  return pino({ level: 'silent' })
}

/**
 * Our own errors as code, message, facts and the messages of their causes: never a stack, and never foreign objects,
 * which may hold headers or URLs with secrets. Anything else is a bug and keeps its stack.
 */
function serializeError(error: unknown): unknown {
  if (!isMirrorError(error)) return error instanceof Error ? stdSerializers.err(error) : error
  const causes: string[] = []
  for (let cause = error.cause; cause instanceof Error && causes.length < 4; cause = cause.cause) {
    causes.push('code' in cause ? `${cause.message} (${String(cause.code)})` : cause.message)
  }
  return { code: error.code, message: error.message, ...error.fields, ...(causes.length > 0 ? { causes } : {}) }
}

/** `2026-12-01T10:00:00.000Z WARN message key=value …` from one JSON line. */
function formatText(line: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>
  const name = String(level).toUpperCase()
  const pairs = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const error = err === undefined ? [] : [formatError(err)]
  return `${[String(time), name.padEnd(5), String(msg ?? ''), ...pairs, ...error].join(' ').trimEnd()}\n`
}

function formatError(err: unknown): string {
  if (typeof err !== 'object' || err === null) return String(err)
  const { code, message, stack } = err as Record<string, unknown>
  return [
    code === undefined ? '' : `[${String(code)}]`,
    String(message ?? ''),
    stack === undefined ? '' : `\n${String(stack)}`,
  ]
    .filter((part) => part !== '')
    .join(' ')
}
