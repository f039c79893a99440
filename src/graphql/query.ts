import { executeSync, type FieldNode, type GraphQLSchema, Kind } from 'graphql'
import { answerTooLarge } from '../core/errors.ts'
import type { Posts } from '../core/posts/operations.ts'
import type { PreparedOperation } from './documents.ts'
import { collect, type Merged, type Plan, Planner, type Request, type Source, valuesOf } from './plan.ts'
import type { Variables } from './tree.ts'

export interface QueryPlan extends Plan {
  /** Whether anything of it is in the store. */
  readonly reads: boolean
}

export function planQuery(schema: GraphQLSchema, operation: PreparedOperation, variables: Variables): QueryPlan {
  const planner = new Planner(variables)
  const wishes = [...collect([operation.tree], variables)].map(([key, fields]) => {
    if (fields[0].kind !== 'introspection') return planner.atTop(key, fields)
    return { kind: 'json', key, slot: planner.slot(introspection(schema, operation, fields)) } as const
  })
  const reads = wishes.some(({ kind }) => kind === 'one' || kind === 'many')
  return { selection: { wishes }, slots: planner.slots, reads }
}

/** The JSON of the answer's data. */
export async function runQuery(plan: QueryPlan, request: Request, posts: Posts): Promise<string> {
  const values = valuesOf(plan, request)
  if (plan.reads) return posts.read(request.actor, plan.selection, values)
  const entries = plan.selection.wishes.map(wish => {
    const value = wish.kind === 'json' ? values[wish.slot] : wish.kind === 'text' ? JSON.stringify(wish.text) : '[]'
    return `${JSON.stringify(wish.key)}:${value}`
  })
  return `{${entries.join(',')}}`
}

/** Questions about the schema are graphql-js's to answer; the answer takes its place among what is read. */
function introspection(schema: GraphQLSchema, { definition, fragments }: PreparedOperation, fields: Merged): Source {
  const selections = fields.map(({ node }) => node).filter((node): node is FieldNode => node !== undefined)
  const operation = { ...definition, selectionSet: { kind: Kind.SELECTION_SET, selections } as const }
  const document = { kind: Kind.DOCUMENT, definitions: [operation, ...fragments.values()] } as const
  return ({ variables }) => {
    const { data } = executeSync({ schema, document, variableValues: variables })
    const text = JSON.stringify(Object.values(data ?? {})[0] ?? null)
    if (text.length > mostText) throw answerTooLarge()
    return text
  }
}

/** Characters of what is told about the schema. */
const mostText = 4 * 1024 * 1024
