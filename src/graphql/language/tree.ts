import {
  type ArgumentNode,
  coerceInputLiteral,
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { badInput } from '../../core/input.ts'
import { fragmentsOf, isIntrospection } from './limits/depth.ts'

/** A valid operation as a tree for costs and plans: fields with their types from the schema, and fragments. */
export type Node = Field | Spread

export interface Field {
  readonly kind: 'value' | 'one' | 'many' | 'typename' | 'introspection'
  readonly key: string
  readonly name: string
  /** The name of the object type that has the field. */
  readonly type: string
  readonly args: ReadonlyMap<string, Argument>
  readonly conditions: readonly Condition[]
  readonly selections: readonly Node[]
}

export interface Spread {
  readonly kind: 'spread'
  readonly conditions: readonly Condition[]
  readonly fragment: Fragment
}

export interface Fragment {
  selections: readonly Node[]
}

/**
 * A constant or a variable. `required` is the name of the argument if it must not be null. Its variable can still be null
 * if the variable has a default.
 */
export type Argument =
  | { readonly value: unknown }
  | { readonly variable: string; readonly required: string | undefined }

/** `wanted` is true for `@include` and false for `@skip`. */
export interface Condition {
  readonly argument: Argument
  readonly wanted: boolean
}

/** The variables of a request, coerced to the types of the schema. Variables without a value are missing. */
export type Variables = Readonly<Record<string, unknown>>

export function argumentIn(argument: Argument | undefined, variables: Variables): unknown {
  if (argument === undefined) return undefined
  if (!('variable' in argument)) return argument.value
  const value = variables[argument.variable]
  if (argument.required !== undefined && (value === null || value === undefined)) {
    throw badInput(`${argument.required} must not be null`)
  }
  return value
}

export function isIncluded({ conditions }: Node, variables: Variables): boolean {
  if (conditions.length === 0) return true // the usual case, which needs no closure
  return conditions.every(({ argument, wanted }) => argumentIn(argument, variables) === wanted)
}

/** Converts the operations of one document to trees that share the document's fragments. */
export function treesOf(
  schema: GraphQLSchema,
  document: DocumentNode,
): (operation: OperationDefinitionNode) => readonly Node[] {
  const fragments = fragmentsOf(document)
  const known = new Map<string, Fragment>()

  const fragmentNamed = (name: string): Fragment => {
    let fragment = known.get(name)
    if (fragment === undefined) {
      fragment = { selections: [] }
      known.set(name, fragment)
      const definition = fragments.get(name)
      const type = schema.getType(definition?.typeCondition.name.value ?? '')
      if (definition !== undefined && isObjectType(type)) fragment.selections = nodesOf(definition.selectionSet, type)
    }
    return fragment
  }

  const nodesOf = ({ selections }: SelectionSetNode, type: GraphQLObjectType): Node[] =>
    selections.map(selection => {
      const conditions = conditionsOf(selection.directives)
      if (selection.kind === Kind.FRAGMENT_SPREAD)
        return { kind: 'spread', conditions, fragment: fragmentNamed(selection.name.value) }
      // All types are object types, so the type condition of a valid fragment is always true.
      if (selection.kind === Kind.INLINE_FRAGMENT)
        return { kind: 'spread', conditions, fragment: { selections: nodesOf(selection.selectionSet, type) } }
      return fieldOf(selection, type, conditions)
    })

  const fieldOf = (node: FieldNode, type: GraphQLObjectType, conditions: readonly Condition[]): Field => {
    const name = node.name.value
    const definition = schema.getField(type, name)
    if (definition === undefined) throw new Error(`${type.name} has no field ${name}`)
    const inner = getNamedType(definition.type)
    return {
      kind: isIntrospection(name) ? 'introspection' : name === '__typename' ? 'typename' : kindOf(definition.type),
      key: node.alias ? Buffer.from(node.alias.value).toString() : definition.name,
      name: definition.name, // this or an alias that is a part of the client's text would keep all of it in memory
      type: type.name,
      args: argumentsOf(node.arguments, definition.args),
      conditions,
      selections: node.selectionSet !== undefined && isObjectType(inner) ? nodesOf(node.selectionSet, inner) : [],
    }
  }

  return ({ operation, selectionSet }) => {
    const root = schema.getRootType(operation)
    return root ? nodesOf(selectionSet, root) : []
  }
}

/** The names of the top-level fields, those in fragments too, each once. */
export function rootsOf(tree: readonly Node[]): readonly string[] {
  const names = new Set<string>()
  const all = new Set([tree])
  // The loop also gets what is added on the way. Each fragment is visited once, however often it is used.
  for (const nodes of all) {
    for (const node of nodes) {
      if (node.kind === 'spread') all.add(node.fragment.selections)
      else names.add(node.name)
    }
  }
  return [...names]
}

function kindOf(type: GraphQLOutputType): 'value' | 'one' | 'many' {
  const nullable = getNullableType(type)
  if (isListType(nullable)) return 'many'
  return isObjectType(nullable) ? 'one' : 'value'
}

function conditionsOf(directives: readonly DirectiveNode[] = []): readonly Condition[] {
  return directives.flatMap(({ name, arguments: [condition] = [] }) => {
    if (condition === undefined || (name.value !== 'include' && name.value !== 'skip')) return []
    const { value } = condition
    const argument =
      value.kind === Kind.VARIABLE
        ? { variable: value.name.value, required: `@${name.value}(if:)` }
        : { value: value.kind === Kind.BOOLEAN && value.value }
    return [{ argument, wanted: name.value === 'include' }]
  })
}

// All arguments are scalars, so a variable is always the whole value of an argument.
function argumentsOf(
  given: readonly ArgumentNode[] = [],
  definitions: readonly GraphQLArgument[],
): ReadonlyMap<string, Argument> {
  const args = new Map<string, Argument>()
  for (const { name, value } of given) {
    const type = definitions.find(definition => definition.name === name.value)?.type
    const required = isNonNullType(type) ? name.value : undefined
    if (value.kind === Kind.VARIABLE) args.set(name.value, { variable: value.name.value, required })
    else args.set(name.value, { value: type && coerceInputLiteral(value, type) })
  }
  return args
}
