import { executeSync, type FieldNode, type GraphQLSchema, Kind } from 'graphql'
import { Recent } from '../../core/recent.ts'
import type { PreparedOperation } from './documents.ts'
import type { Merged, Source } from './plan.ts'

/**
 * Questions about the schema are graphql-js's to answer; the answer takes its place among what is read. It is the same
 * every time, and kept.
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

/** How large an answer about the schema may be, about as many fields as it has. The usual tools ask for some 1,500. */
export const introspectionBound = 5_000

/** Beyond that, what was not used lately is forgotten. */
const kept = Object.freeze({ answers: 200, bytes: 16 * 1024 * 1024 })

/** Variables may be long, and then are not worth keeping. */
const longestKey = 2000
