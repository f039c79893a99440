import { executeSync, type FieldNode, type GraphQLSchema, Kind } from 'graphql'
import { Recent } from '../../core/recent.ts'
import type { PreparedOperation } from './documents.ts'
import type { Merged, Source } from './plan.ts'

/**
 * Answers introspection fields with graphql-js. The result becomes one JSON value among the values that are read. It is
 * always the same, so it is cached.
 */
export class Introspection {
  readonly #schema: GraphQLSchema
  readonly #known = new Recent<string, string>(kept.answers, {
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
      const key = question + JSON.stringify(variables)
      let text = this.#known.get(key)
      if (text === undefined) {
        const { data } = executeSync({ schema: this.#schema, document, variableValues: variables })
        text = JSON.stringify(Object.values(data ?? {})[0] ?? null)
        if (key.length <= longestKey) this.#known.set(key, text)
      }
      return text
    }
  }
}

/** Maximum size of an introspection result, roughly in fields. The queries of the usual tools need about 1,500. */
export const introspectionBound = 5_000

/** Limits of the cache. Beyond them, the results that were not used recently are dropped. */
const kept = Object.freeze({ answers: 200, bytes: 16 * 1024 * 1024 })

/** Results with long variables are not cached. */
const longestKey = 2000
