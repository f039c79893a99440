import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getVariableValues,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  type SelectionNode,
  specifiedRules,
  type Token,
  TokenKind,
  validate,
} from 'graphql'
import type { Fields } from '../../core/input.ts'
import { Counts } from '../../lib/counts.ts'
import { LruCache } from '../../lib/lru-cache.ts'
import { UsedBefore } from '../../lib/used-before.ts'
import { waited } from '../../lib/waits.ts'
import { refusal, refusalFromGraphQL } from '../errors.ts'
import { echo } from './echo.ts'
import { type Cost, costOf } from './limits/cost.ts'
import { depthOf } from './limits/depth.ts'
import { type Node, rootsOf, treesOf, type Variables } from './tree.ts'

export interface DocumentsOptions {
  readonly schema: GraphQLSchema
  readonly maxDepth: number
  /** Whether error messages may suggest other names ("Did you mean …?"). */
  readonly suggestions: boolean
  /** Whether documents may ask for the schema. Default: yes. `__typename` is always allowed. */
  readonly introspection?: boolean
}

/** An LRU cache of parsed and valid documents, by their text, from their second use on. Invalid ones are not cached. */
export class Documents {
  readonly #options: DocumentsOptions
  readonly #known = new LruCache<string, ValidDocument>(kept.documents, {
    of: ({ weight }) => weight,
    most: kept.bytes,
  })
  readonly #used = new UsedBefore()

  constructor(options: DocumentsOptions) {
    this.#options = options
  }

  /** Throws a refusal if the document is over a limit, too deep or invalid. */
  prepare(text: string): ValidDocument {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const begun = performance.now()
    const { schema, maxDepth, suggestions, introspection = true } = this.#options
    const parsed = parseWithin(text)
    const depth = depthOf(parsed)
    if (depth > maxDepth) {
      const message = `The operation nests ${depth} levels deep; ${maxDepth} are allowed.`
      throw refusal('DEPTH_LIMIT_EXCEEDED', message, { depth, limit: maxDepth })
    }
    checkRepetitions(parsed)
    const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]
    const errors = validate(schema, parsed, rules, { maxErrors, hideSuggestions: !suggestions })
    if (errors.length > 0) throw refusalFromGraphQL('GRAPHQL_VALIDATION_FAILED', errors)
    const isKept = this.#used.again(text)
    // Parse again without locations, because they keep every token of the text in memory.
    const document = validDocument(text, parse(text, { noLocation: true }), isKept, this.#options)
    if (isKept) this.#known.set(Buffer.from(text).toString(), document) // a copy: the text may be a part of a URL
    waited('parse', begun)
    return document
  }
}

const kept = Object.freeze({ documents: 2000, bytes: 32 * 1024 * 1024 })

/** Limits of a document: its size, the length and repetition of names, and the nesting of literals and of lists in types. */
export const documentBounds = Object.freeze({
  bytes: 64 * 1024,
  tokens: 1000,
  nameLength: 128,
  repetitions: 100,
  literalDepth: 32,
})

const maxErrors = 10

function parseWithin(text: string): DocumentNode {
  const { bytes, tokens } = documentBounds
  if (text.length > bytes || Buffer.byteLength(text) > bytes) throw tooLarge(`is larger than ${bytes} bytes`)
  try {
    // By default graphql-js allows empty selection sets. The specification does not.
    const document = parse(text, { maxTokens: tokens, allowEmptySelectionSets: false })
    checkNames(document)
    return document
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    const hasTooMany = error.message.startsWith('Syntax Error: Document contains more than')
    throw hasTooMany ? tooLarge(`has more than ${tokens} tokens`) : refusalFromGraphQL('GRAPHQL_PARSE_FAILED', [error])
  }
}

/** By the tokens of a parsed document: `visit` takes a tenth of the CPU of a refused operation. */
function checkNames({ loc }: DocumentNode): void {
  const { nameLength, literalDepth } = documentBounds
  let [parentheses, literals] = [0, 0]
  for (let token: Token | null = loc?.startToken ?? null; token !== null; token = token.next) {
    const { kind, start, end } = token
    if (kind === TokenKind.NAME && end - start > nameLength)
      throw tooLarge(`has a name of more than ${nameLength} characters`)
    if (kind === TokenKind.PAREN_L) parentheses++
    else if (kind === TokenKind.PAREN_R) parentheses--
    // Braces outside of parentheses are those of selections.
    else if (kind === TokenKind.BRACKET_L || (kind === TokenKind.BRACE_L && parentheses > 0)) literals++
    else if (kind === TokenKind.BRACKET_R || (kind === TokenKind.BRACE_R && parentheses > 0)) literals--
    if (literals > literalDepth) throw tooLarge(`has a literal or a type that nests more than ${literalDepth} deep`)
  }
}

/** graphql-js compares each two fields of one name with all that they select: 245 of them would take 20 to 100 ms. */
function checkRepetitions({ definitions }: DocumentNode): void {
  const counts = new Counts()
  const check = (node: DocumentNode['definitions'][number] | SelectionNode): void => {
    if (!('selectionSet' in node) || node.selectionSet === undefined) return
    if (node.kind === Kind.FIELD && counts.add((node.alias ?? node.name).value) > documentBounds.repetitions)
      throw tooLarge(`selects from more than ${documentBounds.repetitions} fields of one name or alias`)
    node.selectionSet.selections.forEach(check)
  }
  definitions.forEach(check)
}

function tooLarge(reason: string) {
  return refusal('DOCUMENT_TOO_LARGE', `The document ${reason}.`)
}

export type ValidDocument = ReturnType<typeof validDocument>

function validDocument(text: string, document: DocumentNode, isKept: boolean, options: DocumentsOptions) {
  const treeOf = treesOf(options.schema, document)
  /** The approximate memory in bytes. */
  const weight = 2 * text.length + ((document.tokenCount ?? 0) + 1) * bytesPerToken
  const operations = document.definitions
    .filter(definition => definition.kind === Kind.OPERATION_DEFINITION)
    .map(definition => preparedOperation(definition, treeOf(definition), { isKept, weight }, options))
  /** The operation with this name, or the only operation if there is no name. */
  const operation = (name: string | undefined): PreparedOperation => {
    const [first, ...others] = operations
    const named = name === undefined ? first : operations.find(operation => operation.name === name)
    const refuse = (message: string) => refusal('OPERATION_RESOLUTION_FAILURE', message)
    if (named === undefined) throw refuse(`There is no operation named "${echo(name ?? '')}".`)
    if (name === undefined && others.length > 0)
      throw refuse('The document has several operations: operationName must choose one.')
    return named
  }
  return { operations, operation, weight }
}

/** Estimated memory per token of a cached document, for its tree and syntax nodes, in addition to the text. */
const bytesPerToken = 200

/** An operation of a valid document. It can run with any variables. */
export type PreparedOperation = ReturnType<typeof preparedOperation>

function preparedOperation(
  { operation: kind, name, variableDefinitions = [] }: OperationDefinitionNode,
  tree: readonly Node[],
  document: { readonly isKept: boolean; readonly weight: number },
  { schema, suggestions }: DocumentsOptions,
) {
  const variableNames = variableDefinitions.map(({ variable }) => variable.name.value)
  /** The cost without variables, which never changes. */
  let ownCost: Cost | undefined
  return {
    /** A unique id of this object. The same operation gets another id if it is prepared again. Ends with a blank. */
    id: `${++prepared} `,
    kind,
    // Copied, because a part of the client's text would keep all of it in memory, as long as a subscription has the name.
    name: name && Buffer.from(name.value).toString(),
    tree,
    /** The fields of the root type that it asks for, as the schema names them. */
    roots: rootsOf(tree),
    variableNames,
    document,
    /** The variables of a request, coerced to the types of the schema, with defaults filled in. */
    coerce(inputs: Fields): Variables {
      if (variableNames.length === 0) return none
      // The schema takes no objects and no lists, and graphql-js would print all that was sent into its message.
      const nested = variableNames.find(name => Object.hasOwn(inputs, name) && Object(inputs[name]) === inputs[name])
      if (nested !== undefined)
        throw refusal('BAD_USER_INPUT', `Variable "$${nested}" has invalid value: it must be a single value.`)
      const options = { maxErrors, hideSuggestions: !suggestions }
      const { variableValues, errors } = getVariableValues(schema, variableDefinitions, inputs, options)
      if (errors !== undefined) throw refusalFromGraphQL('BAD_USER_INPUT', errors)
      return variableValues.coerced
    },
    cost(variables: Variables): Cost {
      if (variables !== none) return costOf(tree, variables)
      ownCost ??= costOf(tree, none)
      return ownCost
    },
  }
}

let prepared = 0

const none: Variables = Object.freeze({})
