const UNITS = [
  { ms: 86_400_000, name: 'd' },
  { ms: 3_600_000, name: 'h' },
  { ms: 60_000, name: 'min' },
  { ms: 1000, name: 's' },
] as const

/** How long ago a moment of the API was, in its largest unit: `3 d ago`, `now`; `never` for null. `now` in milliseconds. */
export function formatAge(time: string | null, now = Date.now()): string {
  if (time === null) return 'never'
  const passed = now - Date.parse(time)
  if (Number.isNaN(passed)) return time
  const unit = UNITS.find(({ ms }) => Math.abs(passed) >= ms)
  if (unit === undefined) return 'now'
  const amount = `${Math.floor(Math.abs(passed) / unit.ms)} ${unit.name}`
  return passed < 0 ? `in ${amount}` : `${amount} ago`
}

/** A time span in seconds for people: `48 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}
