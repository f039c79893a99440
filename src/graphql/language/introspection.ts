import { executeSync, type FieldNode, type GraphQLSchema, Kind } from 'graphql'
import { LruCache } from '../../core/lru-cache.ts'
import type { PreparedOperation } from './documents.ts'
import type { Merged, Source } from './plan.ts'
import type { Variables } from './tree.ts'

/**
 * Answers introspection fields with graphql-js. The result becomes one JSON value among the values that are read. It is
 * always the same, so it is cached.
 */
export class Introspection {
  readonly #schema: GraphQLSchema
  readonly #known = new LruCache<string, string>(kept.answers, {
    weights: { of: ({ length }) => 2 * length, most: kept.bytes },
  })

  constructor(schema: GraphQLSchema) {
    this.#schema = schema
  }

  answerTo(operation: PreparedOperation, fields: Merged): Source {
    const selections = fields.map(({ node }) => node).filter((node): node is FieldNode => node !== undefined)
    const definition = { ...operation.definition, selectionSet: { kind: Kind.SELECTION_SET, selections } as const }
    const document = { kind: Kind.DOCUMENT, definitions: [definition, ...operation.fragments.values()] } as const
    const question = `${operation.id}${fields[0].key} `
    return ({ variables }) => {
      const inputs = keyOf(variables)
      const key = question + inputs
      let text = inputs === undefined ? undefined : this.#known.get(key)
      if (text === undefined) {
        const { data } = executeSync({ schema: this.#schema, document, variableValues: variables })
        text = JSON.stringify(Object.values(data ?? {})[0] ?? null)
        if (inputs !== undefined) this.#known.set(key, text)
      }
      return text
    }
  }
}

/** One operation may ask hundreds of questions, all with the same variables. */
const keys = new WeakMap<Variables, string | undefined>()

/** Variables as text, unless they are too long to be worth keeping. */
function keyOf(variables: Variables): string | undefined {
  if (keys.has(variables)) return keys.get(variables)
  const isLong = Object.values(variables).some(value => typeof value === 'string' && value.length > longestKey)
  const text = isLong ? undefined : JSON.stringify(variables)
  const key = text !== undefined && text.length <= longestKey ? text : undefined
  keys.set(variables, key)
  return key
}

/** How large an answer about the schema may be, about as many fields as it has. The usual tools ask for some 1,500. */
export const introspectionBound = 5_000

/** Limits of the cache. Beyond them, the results that were not used recently are dropped. */
const kept = Object.freeze({ answers: 200, bytes: 16 * 1024 * 1024 })

/** Results with long variables are not cached. */
const longestKey = 2000
