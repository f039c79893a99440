import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLSchema,
  getVariableValues,
  Kind,
  NoFragmentCyclesRule,
  type OperationDefinitionNode,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql'
import type { Fields } from '../core/input.ts'
import { Recent } from '../core/recent.ts'
import { refusal, refusalOf } from './errors.ts'
import { depthOf } from './limits/depth.ts'
import { fieldsCanBeMerged } from './merging.ts'
import { type Node, treeOf, type Variables } from './tree.ts'

export const documentBounds = Object.freeze({ bytes: 64 * 1024, tokens: 2000 })

const rules = [...specifiedRules.filter(rule => rule !== OverlappingFieldsCanBeMergedRule), fieldsCanBeMerged]

export interface DocumentsOptions {
  readonly schema: GraphQLSchema
  readonly maxDepth: number
  /** Whether errors may name what else there is ("Did you mean …?"). */
  readonly suggestions: boolean
}

/** Documents that were parsed and found valid, by their text. What is refused is not kept. */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #known = new Recent<string, ValidDocument>(kept.documents, {
    weights: { of: ({ weight }) => weight, most: kept.bytes },
  })

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Throws a refusal unless the document keeps its bounds, nests no deeper than allowed and is valid. */
  prepare(text: string): ValidDocument {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const { schema, maxDepth, suggestions } = this.#options
    const parsed = parseWithin(text)
    const depth = depthOf(parsed)
    if (depth !== undefined && depth > maxDepth) {
      throw refusal('DEPTH_LIMIT_EXCEEDED', `The operation nests ${depth} levels deep; ${maxDepth} are allowed.`, {
        depth,
        limit: maxDepth,
      })
    }
    const options = { maxErrors: 10, hideSuggestions: !suggestions, allowEmptySelectionSets: false }
    // Rules that follow fragments take them to end somewhere.
    const errors = validate(schema, parsed, depth === undefined ? [NoFragmentCyclesRule] : rules, options)
    if (errors.length > 0) throw refusalOf('GRAPHQL_VALIDATION_FAILED', errors)
    // Without locations, which hold on to every token of the text.
    const document = new ValidDocument(schema, parse(text, { noLocation: true }), suggestions)
    this.#known.set(text, document)
    return document
  }
}

/** Beyond that, what was not used lately is forgotten. */
const kept = Object.freeze({ documents: 2000, bytes: 64 * 1024 * 1024 })

// Measured: what is kept of a document, plans and all, by its fields. The text itself is small beside it.
const bytesPerField = 1000

function parseWithin(text: string): DocumentNode {
  if (text.length > documentBounds.bytes || Buffer.byteLength(text) > documentBounds.bytes) {
    throw refusal('DOCUMENT_TOO_LARGE', `The document is larger than ${documentBounds.bytes} bytes.`)
  }
  try {
    return parse(text, { maxLexicalTokens: documentBounds.tokens })
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    if (error.message.includes('tokens. Parsing aborted')) {
      throw refusal('DOCUMENT_TOO_LARGE', `The document has more than ${documentBounds.tokens} tokens.`)
    }
    throw refusalOf('GRAPHQL_PARSE_FAILED', [error])
  }
}

export class ValidDocument {
  readonly #operations: readonly PreparedOperation[]
  /** About how many bytes it takes. */
  readonly weight: number

  constructor(schema: GraphQLSchema, { definitions }: DocumentNode, suggestions: boolean) {
    const fragments = new Map<string, FragmentDefinitionNode>()
    for (const definition of definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition)
    }
    this.#operations = definitions
      .filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
      .map(definition => new PreparedOperation(schema, definition, fragments, suggestions))
    const fields = this.#operations.reduce((sum, { tree }) => sum + sizeOf(tree, new Set()), 0)
    this.weight = (fields + 1) * bytesPerField
  }

  /** The operation of this name, or the only one there is. */
  operation(name: string | undefined): PreparedOperation {
    const [first, ...others] = this.#operations
    const named = name === undefined ? first : this.#operations.find(operation => operation.name === name)
    if (named === undefined) throw refusal('OPERATION_RESOLUTION_FAILURE', `There is no operation named "${name}".`)
    if (name === undefined && others.length > 0) {
      throw refusal(
        'OPERATION_RESOLUTION_FAILURE',
        'The document has several operations: operationName must choose one.',
      )
    }
    return named
  }
}

/** An operation of a valid document, ready to be done with any variables. */
export class PreparedOperation {
  readonly kind: OperationDefinitionNode['operation']
  readonly name: string | undefined
  readonly tree: readonly Node[]
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly definition: OperationDefinitionNode
  readonly #schema: GraphQLSchema
  readonly #suggestions: boolean

  constructor(
    schema: GraphQLSchema,
    definition: OperationDefinitionNode,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    suggestions: boolean,
  ) {
    this.kind = definition.operation
    this.name = definition.name?.value
    this.tree = treeOf(schema, definition, fragments)
    this.definition = definition
    this.fragments = fragments
    this.#schema = schema
    this.#suggestions = suggestions
  }

  /** The variables of a request as the schema understands them, defaults filled in. */
  coerce(inputs: Fields): Variables {
    const { variableDefinitions = [] } = this.definition
    if (variableDefinitions.length === 0) return none
    const options = { maxErrors: 10, hideSuggestions: !this.#suggestions }
    const { variableValues, errors } = getVariableValues(this.#schema, variableDefinitions, inputs, options)
    if (errors !== undefined) throw refusalOf('BAD_USER_INPUT', errors)
    return variableValues.coerced
  }
}

const none: Variables = Object.freeze({})

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
