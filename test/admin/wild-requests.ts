import fc from 'fast-check'

/** A request to the admin API, as nobody should send it. */
export interface WildRequest {
  readonly method: string
  /** From the root, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** What an OpenAPI document says, as far as requests are made of it. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
}

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
}

/** Words that mean something here, and bytes that mean something elsewhere. */
const telling = fc.constantFrom(
  ...['registry.example.test', 'acme', 'widget', 'acme/widget', 'registry.example.test/acme/widget', 'acme/vpc/aws'],
  ...['1.0.0', '~> 1.0', 'latest', '>= 1, < 2', '= 1', 'v1', '1.0.0-rc.1+build', 'linux_amd64', '*', 'main.tf', ''],
  ...['registry.example.test/acme/widget 1.0.0 linux_amd64', 'registry.example.test/acme/vpc/aws 1.0.0', 'release'],
  ...['../../etc/passwd', '.', '..', '%00', '\0', '\n', '__proto__', 'constructor', 'toString', '-', '0', 'null', '💥'],
  ...['xn--a', '[::1]', '127.0.0.1', 'a'.repeat(300), 'http://[', 'git::https://x//y?ref=z', 'Ａ', '\ud800', 'Ω'],
  'provider "registry.example.test/acme/widget" {\n  version = "1.0.0"\n  hashes = ["zh:00"]\n}\n',
  'module "a" { source = "acme/vpc/aws" }\nresource "widget_x" "y" {}\n',
  'provider "x" {',
  '{"module":[{"a":{"source":"acme/vpc/aws"}}]}',
)
const text = fc.oneof({ weight: 3, arbitrary: telling }, fc.string({ unit: 'binary', maxLength: 40 }), fc.string())

/** Any request: to a route with what fits its schemas, with something else in one place, or to nowhere. */
export function wildRequest(document: ApiDocument): fc.Arbitrary<WildRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const toRoute = fc.constantFrom(...operations).chain(({ path, method, operation }) => {
    const { parameters = [], requestBody } = operation
    const query = parameters.filter((parameter) => parameter.in === 'query')
    const schema = requestBody?.content['application/json']?.schema
    return fc.record({
      method: mostly(fc.constant(method), fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS')),
      path: fc.tuple(pathOf(path), queryOf(query, document)).map(([path, query]) => `${path}${query}`),
      headers: fc.record({ 'content-type': mostly(fc.constant('application/json'), header) }, { requiredKeys: [] }),
      body: schema === undefined ? fc.constant('') : mostly(bodyOf(schema, document), fc.string()),
    })
  })
  const toNowhere = fc.record({
    method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PROPFIND'),
    path: fc
      .oneof(
        fc.webPath(),
        fc.array(segment, { maxLength: 9 }).map((parts) => `/${parts.join('/')}`),
      )
      .map(toAscii),
    headers: fc.dictionary(fc.stringMatching(/^x-[a-z]{1,10}$/), header, { maxKeys: 5 }),
    body: fc.string(),
  })
  return fc.oneof({ weight: 9, arbitrary: toRoute }, toNowhere)
}

function mostly<T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 8, arbitrary: usual }, other)
}

const header = fc.stringMatching(/^[\x21-\x7e]{0,60}$/)
/** Encoded as a client would, or put in as it is. */
const segment = fc.oneof(
  { weight: 5, arbitrary: text.map((part) => encodeURIComponent(part.toWellFormed())) },
  fc.webSegment(),
  fc.stringMatching(/^[\x21-\x7e]{0,30}$/),
)

/** A request line can hold nothing else. */
function toAscii(path: string): string {
  return path.startsWith('/') ? path.replaceAll(/[^\x21-\x7e]/g, '_') : `/${path.replaceAll(/[^\x21-\x7e]/g, '_')}`
}

function pathOf(template: string): fc.Arbitrary<string> {
  const parts = template.split('/').map((part) => (part.startsWith('{') ? segment : fc.constant(part)))
  return fc.tuple(...parts).map((given) => toAscii(given.join('/')))
}

function queryOf(
  parameters: readonly { readonly name: string; readonly schema: Schema }[],
  document: ApiDocument,
): fc.Arbitrary<string> {
  const known = fc.tuple(
    ...parameters.map(({ name, schema }) =>
      fc.option(
        fromSchema(schema, document).map((value) => [name, String(value)] as const),
        { nil: undefined },
      ),
    ),
  )
  const unknown = mostly(fc.constant<[string, string][]>([]), fc.array(fc.tuple(text, text), { maxLength: 3 }))
  return fc.tuple(known, unknown).map(([given, others]) => {
    const pairs = [...given.filter((pair) => pair !== undefined), ...others].map((pair) =>
      pair.map((part) => encodeURIComponent(part.toWellFormed())).join('='),
    )
    return pairs.length === 0 ? '' : `?${pairs.join('&')}`
  })
}

function bodyOf(schema: Schema, document: ApiDocument): fc.Arbitrary<string> {
  return mostly(fromSchema(schema, document), fc.jsonValue()).map((value) => JSON.stringify(value))
}

/** A value of a schema; now and then, anywhere in it, something else. */
function fromSchema(schema: Schema, document: ApiDocument): fc.Arbitrary<unknown> {
  const { $ref, type, properties, items, additionalProperties, minimum = -3, maximum = 1_000 } = schema
  if ($ref !== undefined) return fromSchema(document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {}, document)
  const wild = fc.oneof(fc.jsonValue(), text, fc.constant(Number.MAX_SAFE_INTEGER))
  const rarely = (usual: fc.Arbitrary<unknown>) => fc.oneof({ weight: 25, arbitrary: usual }, wild)
  if (schema.enum !== undefined) return rarely(fc.constantFrom(...schema.enum))
  switch (type) {
    case 'string':
      return rarely(text)
    case 'boolean':
      return rarely(fc.boolean())
    case 'integer':
      return rarely(fc.integer({ min: minimum, max: Math.min(maximum, 1_000) }))
    case 'array':
      return rarely(fc.array(fromSchema(items ?? {}, document), { maxLength: 3 }))
    case 'object': {
      const known = Object.entries(properties ?? {}).map(([key, inner]) => [key, fromSchema(inner, document)] as const)
      const whole = fc.record(Object.fromEntries(known), { requiredKeys: [...(schema.required ?? [])] })
      if (typeof additionalProperties === 'object') {
        return rarely(fc.dictionary(text, fromSchema(additionalProperties, document), { maxKeys: 4 }))
      }
      return rarely(
        mostly<unknown>(whole, fc.tuple(whole, fc.dictionary(text, fc.jsonValue(), { maxKeys: 2 })).map(join)),
      )
    }
    default:
      return wild
  }
}

function join([known, more]: [object, object]): unknown {
  return { ...known, ...more }
}
