import { type GraphQLResolveInfo, type GraphQLSchema, isObjectType } from 'graphql'
import { argumentIn, type Field, isIncluded, type Node, type Variables } from '../tree.ts'

/**
 * Returns a function that computes the size of an introspection result. A field counts 1, and a description 1 more for
 * each 100 characters, because graphql-js resolves the fields one by one. The size is computed on the schema itself
 * with the real lengths of its lists, so that the queries of the usual tools are not overestimated. A fragment that
 * occurs several times is computed once for each type, field or argument it applies to, and added at every use.
 */
export function answerSizes(schema: GraphQLSchema, variables: Variables): (question: Field) => number {
  const known = new Map<readonly Node[], Map<unknown, number>>()
  const info = { schema } as GraphQLResolveInfo

  const ofAll = (nodes: readonly Node[], source: unknown): number => {
    let bySource = known.get(nodes)
    if (bySource === undefined) {
      bySource = new Map()
      known.set(nodes, bySource)
    }
    let sum = bySource.get(source)
    if (sum === undefined) {
      sum = 0
      for (const node of nodes) {
        if (!isIncluded(node, variables)) continue
        sum += node.kind === 'spread' ? ofAll(node.fragment.selections, source) : ofField(node, source)
      }
      bySource.set(source, sum)
    }
    return sum
  }

  const ofField = (field: Field, source: unknown): number => {
    for (const argument of field.args.values()) argumentIn(argument, variables)
    if (field.selections.length > 0) {
      const found = lookUp(field, source)
      const items = Array.isArray(found) ? found : [found]
      return items.reduce((sum, item) => sum + (item ? ofAll(field.selections, item) : 0), 1)
    }
    if (field.name !== 'description') return 1
    return 1 + Math.floor(String(lookUp(field, source) ?? '').length / 100)
  }

  const lookUp = ({ type, name, args }: Field, source: unknown): unknown => {
    if (name === '__schema') return schema
    if (name === '__type') return schema.getType(String(argumentIn(args.get('name'), variables)))
    const parent = schema.getType(type)
    const resolve = isObjectType(parent) ? parent.getFields()[name]?.resolve : undefined
    return resolve?.(source, { includeDeprecated: true }, undefined, info)
  }

  return question => ofField(question, schema)
}
