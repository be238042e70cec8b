import { type Logger, pino, stdSerializers, symbols } from 'pino'
import { isMirrorError } from './errors.ts'
import { nameSources } from './source-stack.ts'

/** What every part of Terramirror logs to: pino's interface. Passed explicitly, never a global. */
export type Log = Logger

/** Text that needs no quotes to be one word of a line. */
const PLAIN = /^[\p{L}\p{N}_.,:;/+@()[\]{}<>*~%-]+$/u

/** How to log. */
export interface LogOptions {
  readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `json`: one object a line. `text`: one readable line. `auto`: text on a terminal, else json. */
  readonly format: 'auto' | 'json' | 'text'
}

/** Where log lines go; each call is one whole line, or several, with their line feeds. */
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

/** Writes one line of JSON as it is, where `log` writes its own: for lines that are made without it, in its form. */
export function writeLine(log: Log, line: string): void {
  ;(log as unknown as Record<symbol, LogSink>)[symbols.streamSym]?.write(line)
}

/** How long a line may wait for the ones after it. */
const GATHER_MS = 50
/** So much is written at once. */
const GATHER_CHARACTERS = 64 * 1024

/**
 * Writes the first line at once and those that follow on its heels together: a busy mirror answers far more requests in
 * a second than it could make system calls beside. What still waits is written when the process exits; `kill -9` loses
 * at most the last 50 ms.
 */
export function gatherLines(sink: LogSink): LogSink {
  let waiting = ''
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    const text = waiting
    waiting = ''
    if (text !== '') sink.write(text)
  }
  const onTime = (): void => {
    timer = waiting === '' ? undefined : setTimeout(onTime, GATHER_MS)
    flush()
  }
  process.on('exit', flush)
  return {
    ...(sink.isTTY === undefined ? {} : { isTTY: sink.isTTY }),
    write(line) {
      waiting += line
      if (timer === undefined) {
        timer = setTimeout(onTime, GATHER_MS)
        flush()
      } else if (waiting.length > GATHER_CHARACTERS) flush()
    },
  }
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
  if (!isMirrorError(error)) return error instanceof Error ? serializeBug(error) : error
  const causes: string[] = []
  for (let cause = error.cause; cause instanceof Error && causes.length < 4; cause = cause.cause) {
    const told = error.message.includes(cause.message)
    if (!told) causes.push('code' in cause ? `${cause.message} (${String(cause.code)})` : cause.message)
  }
  return { code: error.code, message: error.message, ...error.fields, ...(causes.length > 0 ? { causes } : {}) }
}

/** With its stack, but without the properties that a library hung on it: those may be requests and headers. */
function serializeBug(error: Error): unknown {
  const { type, message, stack } = stdSerializers.err(error)
  return { type, message, stack: nameSources(stack), ...('code' in error ? { code: String(error.code) } : {}) }
}

/** `2026-12-01T10:00:00.000Z WARN  message key=value … [CODE] error (because: cause)` from one JSON line. */
function formatText(line: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(line) as Record<string, unknown>
  const pairs = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' && PLAIN.test(value) ? value : JSON.stringify(value)}`,
  )
  const { summary, stack } = formatError(err)
  const words = [String(time), String(level).toUpperCase().padEnd(5), String(msg ?? ''), ...pairs, summary]
  // What comes from elsewhere must not draw on a terminal, nor look like a line of its own.
  return `${words
    .join(' ')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trimEnd()}\n${stack}`
}

function formatError(err: unknown): { summary: string; stack: string } {
  if (err === undefined) return { summary: '', stack: '' }
  if (typeof err !== 'object' || err === null) return { summary: String(err), stack: '' }
  const { code, message, causes, stack } = err as Record<string, unknown>
  const summary = [
    ...(code === undefined ? [] : [`[${String(code)}]`]),
    String(message ?? ''),
    ...(Array.isArray(causes) ? [`(because: ${causes.join('; ')})`] : []),
  ]
  return { summary: summary.join(' '), stack: stack === undefined ? '' : `${String(stack)}\n` }
}
