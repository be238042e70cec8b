/** Any JSON value, as `JSON.parse` gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject
/** A JSON object, as `JSON.parse` gives it. */
export interface JsonObject {
  [key: string]: JsonValue
}

/** True for an object of parsed JSON; false for null, arrays and everything else. Looks at the outermost value only. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The strings of a JSON array, other elements left out; empty for everything that is not an array. */
export function stringElements(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
