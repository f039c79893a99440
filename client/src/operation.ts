import { fields } from './schema.ts'

/** A document, and the values of its variables. */
export interface Operation {
  readonly text: string
  readonly variables: Readonly<Record<string, unknown>>
}

/** The operation that a selection describes. Its text consists of names of the schema; all values are variables. */
export function operation(root: 'Query' | 'Mutation' | 'Subscription', selection: object): Operation {
  const declared: string[] = []
  const variables: Record<string, unknown> = {}

  const withArguments = (field: string, types: Table<string> = {}, values: object = {}) => {
    const given = Object.entries(values).filter(([, value]) => value !== undefined)
    const texts = given.map(([name, value]) => {
      const variable = name + (declared.length + 1)
      declared.push(`$${variable}: ${own(types, name, field)}`)
      variables[variable] = value
      return `${name}: $${variable}`
    })
    return field + inBrackets(texts)
  }

  const fieldsOf = (type: string, chosen: Table<unknown>): string => {
    const known = own(fields, type, 'The schema')
    const named = Object.keys(chosen).filter(name => name !== '$')
    const plain = Object.keys(known).filter(name => !known[name]?.type && !known[name]?.private)
    const all = (named.length === 0 ? ['*'] : named).flatMap(name => (name === '*' ? plain : name))
    const texts = all.map(name => {
      const field = own(known, name, type)
      const inner = chosen[name] ?? true
      if (inner !== true && typeof inner !== 'object')
        throw new TypeError(`${type}.${name} is neither true nor a selection`)
      const text = withArguments(name, field.args, (inner as { $?: object }).$)
      return field.type === undefined ? text : `${text} ${fieldsOf(field.type, inner as Table<unknown>)}`
    })
    return `{ ${texts.join(' ')} }`
  }

  const body = fieldsOf(root, selection as Table<unknown>)
  const name = Object.keys(selection).join('_') // so that the logs of the service tell what was asked
  return { text: `${root.toLowerCase()} ${name}${inBrackets(declared)} ${body}`, variables }
}

type Table<T> = Readonly<Record<string, T>>

function own<T>(table: Table<T>, name: string, owner: string): T {
  const found = Object.hasOwn(table, name) ? table[name] : undefined
  if (found === undefined) throw new TypeError(`${owner} has no ${name}`)
  return found
}

function inBrackets(texts: readonly string[]): string {
  return texts.length === 0 ? '' : `(${texts.join(', ')})`
}
