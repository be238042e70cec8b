import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** An answer and the operation that gave it; `template` is a path of the document. */
export interface CheckedAnswer {
  readonly template: string
  readonly method: string
  readonly status: number
  readonly json: unknown
}

/** Holds answers against an OpenAPI 3.1 document, by a validator of JSON schema; gives what is wrong. */
export interface DocumentCheck {
  (answer: CheckedAnswer): string[]
  /** A value against a schema by its name. */
  named(name: string, value: unknown): string[]
}

// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested
export function createDocumentCheck(document: any): DocumentCheck {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true, allowUnionTypes: true })
  ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
  for (const word of ['openapi', 'info', 'security', 'paths', 'components']) ajv.addKeyword(word)
  ajv.addSchema(document, 'api')
  const judge = (validate: ValidateFunction | undefined, value: unknown): string[] => {
    if (validate === undefined) return ['the document says nothing about it']
    return validate(value) ? [] : [ajv.errorsText(validate.errors)]
  }
  const check = ({ template, method, status, json }: CheckedAnswer): string[] => {
    const { responses } = document.paths[template][method]
    const key = String(status) in responses ? String(status) : 'default'
    const parts = ['paths', template, method, 'responses', key, 'content', 'application/json', 'schema']
    const pointer = parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
    return judge(ajv.getSchema(`api#/${encodeURI(pointer)}`), json)
  }
  return Object.assign(check, {
    named: (name: string, value: unknown) => judge(ajv.getSchema(`api#/components/schemas/${name}`), value),
  })
}
