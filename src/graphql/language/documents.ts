import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  getVariableValues,
  Kind,
  NoFragmentCyclesRule,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql'
import { LruCache } from '../../core/lru-cache.ts'
import type { Fields } from '../../server/fields.ts'
import { refusal, refusalFromGraphQL } from '../errors.ts'
import { echo } from './echo.ts'
import { type Cost, costOf } from './limits/cost.ts'
import { depthOf } from './limits/depth.ts'
import { checkBounds } from './limits/document.ts'
import { fieldsCanBeMerged } from './merging.ts'
import { type Node, treesOf, type Variables } from './tree.ts'

const rules = [...specifiedRules.filter(rule => rule !== OverlappingFieldsCanBeMergedRule), fieldsCanBeMerged]
const rulesWithoutIntrospection = [...rules, NoSchemaIntrospectionCustomRule]

export interface DocumentsOptions {
  readonly schema: GraphQLSchema
  readonly maxDepth: number
  /** Whether error messages may suggest other names ("Did you mean …?"). */
  readonly suggestions: boolean
  /** Whether documents may ask for the schema. Default: yes. `__typename` is always allowed. */
  readonly introspection?: boolean
}

type OperationOptions = Pick<DocumentsOptions, 'schema' | 'suggestions'>

/** An LRU cache of parsed and valid documents, by their text. Invalid documents are not cached. */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #known = new LruCache<string, ValidDocument>(kept.documents, {
    weights: { of: ({ weight }) => weight, most: kept.bytes },
  })

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Throws a refusal if the document is over a limit, too deep or invalid. */
  prepare(text: string): ValidDocument {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const { schema, maxDepth, suggestions, introspection = true } = this.#options
    const parsed = parseWithin(text)
    const depth = depthOf(parsed)
    if (depth !== undefined && depth > maxDepth) {
      throw refusal('DEPTH_LIMIT_EXCEEDED', `The operation nests ${depth} levels deep; ${maxDepth} are allowed.`, {
        depth,
        limit: maxDepth,
      })
    }
    const options = { maxErrors: 10, hideSuggestions: !suggestions }
    // The other rules follow fragments and would not end if these are circular.
    const applied = depth === undefined ? [NoFragmentCyclesRule] : introspection ? rules : rulesWithoutIntrospection
    const errors = validate(schema, parsed, applied, options)
    if (errors.length > 0) throw refusalFromGraphQL('GRAPHQL_VALIDATION_FAILED', errors)
    // Parse again without locations, because they keep every token of the text in memory.
    const document = new ValidDocument(text, parse(text, { noLocation: true }), { schema, suggestions })
    this.#known.set(text, document)
    return document
  }
}

/** Limits of the cache. Beyond them, the documents that were not used recently are dropped. */
const kept = Object.freeze({ documents: 2000, bytes: 64 * 1024 * 1024 })

// Estimated memory per field of a cached document, for its tree and syntax nodes, in addition to the text.
const bytesPerField = 1200

function parseWithin(text: string): DocumentNode {
  try {
    checkBounds(text)
    // By default graphql-js allows empty selection sets. The specification does not.
    return parse(text, { allowEmptySelectionSets: false })
  } catch (error) {
    throw error instanceof GraphQLError ? refusalFromGraphQL('GRAPHQL_PARSE_FAILED', [error]) : error
  }
}

export class ValidDocument {
  readonly operations: readonly PreparedOperation[]
  /** The approximate memory in bytes. */
  readonly weight: number

  constructor(text: string, { definitions }: DocumentNode, options: OperationOptions) {
    const fragments = new Map<string, FragmentDefinitionNode>()
    for (const definition of definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition)
    }
    const treeOf = treesOf(options.schema, fragments)
    this.operations = definitions
      .filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
      .map(definition => new PreparedOperation(definition, treeOf(definition), fragments, this, options))
    const counted = new Set<unknown>()
    const fields = this.operations.reduce((sum, { tree }) => sum + sizeOf(tree, counted), 0)
    this.weight = 2 * text.length + (fields + 1) * bytesPerField
  }

  /** The operation with this name, or the only operation if there is no name. */
  operation(name: string | undefined): PreparedOperation {
    const [first, ...others] = this.operations
    const named = name === undefined ? first : this.operations.find(operation => operation.name === name)
    if (named === undefined)
      throw refusal('OPERATION_RESOLUTION_FAILURE', `There is no operation named "${echo(name ?? '')}".`)
    if (name === undefined && others.length > 0) {
      throw refusal(
        'OPERATION_RESOLUTION_FAILURE',
        'The document has several operations: operationName must choose one.',
      )
    }
    return named
  }
}

/** An operation of a valid document. It can run with any variables. */
export class PreparedOperation {
  /** A unique id of this object. The same operation gets another id if it is prepared again. Ends with a blank. */
  readonly id = `${++prepared} `
  readonly kind: OperationDefinitionNode['operation']
  readonly name: string | undefined
  readonly tree: readonly Node[]
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly definition: OperationDefinitionNode
  readonly variableNames: readonly string[]
  readonly #document: ValidDocument
  readonly #options: OperationOptions
  /** The cost without variables, which never changes. */
  #cost: Cost | undefined

  constructor(
    definition: OperationDefinitionNode,
    tree: readonly Node[],
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    document: ValidDocument,
    options: OperationOptions,
  ) {
    this.kind = definition.operation
    this.name = definition.name?.value
    this.tree = tree
    this.definition = definition
    this.variableNames = (definition.variableDefinitions ?? []).map(({ variable }) => variable.name.value)
    this.fragments = fragments
    this.#document = document
    this.#options = options
  }

  /** The approximate memory in bytes: that of its document. */
  get weight(): number {
    return this.#document.weight
  }

  /** The variables of a request, coerced to the types of the schema, with defaults filled in. */
  coerce(inputs: Fields): Variables {
    const { variableDefinitions = [] } = this.definition
    if (variableDefinitions.length === 0) return none
    const { schema, suggestions } = this.#options
    // The schema takes no objects and no lists. graphql-js would print all that was sent into its message.
    const large = this.variableNames.find(name => Object.hasOwn(inputs, name) && valuesIn(inputs[name]) > mostValues)
    if (large !== undefined) throw refusal('BAD_USER_INPUT', `Variable "$${large}" has more than ${mostValues} values.`)
    const options = { maxErrors: 10, hideSuggestions: !suggestions }
    const { variableValues, errors } = getVariableValues(schema, variableDefinitions, inputs, options)
    if (errors !== undefined) throw refusalFromGraphQL('BAD_USER_INPUT', errors)
    return variableValues.coerced
  }

  cost(variables: Variables): Cost {
    const { schema } = this.#options
    if (variables !== none) return costOf(this.tree, variables, schema)
    this.#cost ??= costOf(this.tree, none, schema)
    return this.#cost
  }
}

let prepared = 0

const none: Variables = Object.freeze({})

/** Of one variable, counted at any depth. */
const mostValues = 1_000

/** Counts until there are too many. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 0
  for (const each of Object.values(value)) {
    count += valuesIn(each)
    if (count > mostValues) break
  }
  return count
}

function sizeOf(nodes: readonly Node[], counted: Set<unknown>): number {
  let size = 0
  for (const node of nodes) {
    const inner = node.kind === 'spread' ? node.fragment.selections : node.selections
    size++
    if (!counted.has(inner)) {
      counted.add(inner)
      size += sizeOf(inner, counted)
    }
  }
  return size
}
