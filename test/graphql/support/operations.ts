import fc from 'fast-check'
import { type GraphQLArgument, getNamedType, getNullableType, isListType, isObjectType } from 'graphql'
import { type Data, instants } from './data.ts'
import { naiveSchema } from './naive.ts'

/** An operation, and the sets of variables to send it with. */
export interface Operation {
  readonly text: string
  readonly variables: readonly Variables[]
}

export type Variables = Readonly<Record<string, unknown>>

type Root = 'Query' | 'Mutation'
type Type = Root | 'User' | 'Post' | 'Comment' | '__Schema' | '__Type' | '__Field'
/** `Cursor` is an ID that some row can have, or null: the argument `after` accepts nothing else. */
type InputType = 'Int' | 'ID' | 'DateTime' | 'Boolean' | 'String' | 'OptionalString' | 'Cursor'

interface Field {
  readonly name: string
  readonly to?: Type
  readonly many?: boolean
  readonly args?: Readonly<Record<string, InputType>>
}

/** The fields of each type: all of the schema, and of introspection these. Counterexamples are reduced towards the first. */
const fieldsOf: Readonly<Record<Type, readonly Field[]>> = {
  Query: [
    ...fieldsIn('Query'),
    { name: '__schema', to: '__Schema' },
    { name: '__type', to: '__Type', args: { name: 'String' } },
  ],
  Mutation: fieldsIn('Mutation'),
  User: fieldsIn('User'),
  Post: fieldsIn('Post'),
  Comment: fieldsIn('Comment'),
  __Schema: [
    ...values('__typename', 'description'),
    { name: 'queryType', to: '__Type' },
    { name: 'types', to: '__Type', many: true },
  ],
  __Type: [
    ...values('name', 'kind', 'description', 'specifiedByURL', '__typename'),
    { name: 'fields', to: '__Field', many: true, args: { includeDeprecated: 'Boolean' } },
  ],
  __Field: [...values('name', 'description', 'isDeprecated', '__typename'), { name: 'type', to: '__Type' }],
}

function values(...names: string[]): readonly Field[] {
  return names.map(name => ({ name }))
}

function fieldsIn(name: Root | 'User' | 'Post' | 'Comment'): readonly Field[] {
  const type = naiveSchema.getType(name)
  const fields = isObjectType(type) ? Object.values(type.getFields()) : []
  const made = fields.map(({ name, type, args }): Field => {
    const to = getNamedType(type)
    // By their names, so that `after` comes before the arguments that it excludes.
    const inputs = args.map(each => [each.name, inputTypeOf(each)] as const).sort()
    const many = isListType(getNullableType(type))
    return { name, many, args: Object.fromEntries(inputs), ...(isObjectType(to) && { to: to.name as Type }) }
  })
  return [...values('__typename'), ...made]
}

function inputTypeOf({ name, type }: GraphQLArgument): InputType {
  if (name === 'after') return 'Cursor'
  return String(type) === 'String' ? 'OptionalString' : (getNamedType(type).name as InputType)
}

const longestName = 'a_name_of_sixty_three_characters_'.padEnd(63, 'x')

/** Aliases that often cause errors. */
const aliases: readonly string[] = [
  ...'a A b id name title text author posts comments _ a1 __proto__ constructor toString o O data'.split(' '),
  ...'ctid xmin c0 c1 t1 T1 answer whole select null true rowid oid'.split(' '),
  ...[longestName, `${longestName}y`, `${longestName}Y`, 'L'.repeat(128)],
]

const fragmentNames = ['F', 'f', '__proto__', 'constructor', 'o', '__schema']

const variableNames: readonly string[] = [
  ...['a', 'b', 'c', 'n', 'limit', '__proto__', 'constructor', 'toString', 'hasOwnProperty', '_', 'A', 'id', 'if'],
  ...['true', 'null', 'on', 'query', 'v'.repeat(128), 'asb', 'anb', 'sb', 'ta', 'atb', 'b0c'],
]

const limits = [1, 0, 2, 3, 5, 10]
const offsets = [0, 1, 2, 5, 12, 40]
const impossibleIds = ['999999', 'abc', '', '01', '-1', '1.5', "1' OR '1'='1", '9007199254740993', '1e3', '\u2028"\\']
const goodStrings = ['Post', 'User', '__Type', 'a \'b\' "c" \\ $1 \u2028 👩‍👧', '\u0001', '{"a":1}']
/** Names of types, and texts: valid ones, and some that are not valid as a title. */
const strings = [...goodStrings, ...goodStrings, ...goodStrings, ' \n ', '', 'x'.repeat(301), 'a\u0000b']

/** The instants of the data in several notations, and other instants. */
const dateTimes: readonly string[] = [
  ...[...instants, '2026-01-31T13:00:00.001+01:00', '2026-01-31T06:30-05:30', '2026-01-31T12:00Z'],
  ...['1969-12-31T23:59:59Z', '2026-02-28T23:59:59.9Z'],
]

/** A selected field as random numbers. fast-check reduces the numbers, and a valid operation is made from them. */
interface RawNode {
  readonly form: 'field' | 'inline' | 'typed inline' | 'spread'
  readonly field: number
  /** An index of `aliases`; above them `k0`, `k1`, …; -1 for no alias. */
  readonly alias: number
  readonly args: readonly RawArgument[]
  /** 0 for none. */
  readonly conditions: number
  readonly inner: readonly RawNode[]
}

/** Encodes how an argument is given and its value; 0 for an argument that is not given. */
type RawArgument = number

interface RawVariable {
  readonly required: boolean
  readonly fallback: number | null
  readonly sent: readonly RawArgument[]
}

interface RawFragment {
  readonly type: number
  readonly depth: number
  readonly nodes: readonly RawNode[]
}

interface RawOperation {
  readonly nodes: readonly RawNode[]
  readonly fragments: readonly RawFragment[]
  readonly variables: readonly RawVariable[]
  readonly name: number
  /** Without named fragments, the same key may be a different field in every place. */
  readonly withFragments: boolean
}

type Given = 'not' | 'literal' | 'null' | 'variable'

const chosen: readonly Given[] = ['literal', 'variable']
const givens: readonly Given[] = ['not', ...chosen, ...chosen, 'not', 'null', ...chosen]

function argumentOf(raw: RawArgument): { readonly given: Given; readonly value: number } {
  return { given: givens[raw % givens.length] ?? 'not', value: Math.floor(raw / givens.length) }
}

function conditionsOf(raw: number): readonly { readonly name: 'skip' | 'include'; readonly value: number }[] {
  const first = { name: raw % 2 === 0 ? 'skip' : 'include', value: (raw >> 1) % 6 } as const
  const second = { name: raw % 2 === 0 ? 'include' : 'skip', value: (raw >> 4) % 6 } as const
  return raw === 0 ? [] : raw % 5 === 0 ? [first, second] : [first]
}

const often = <Item>(usual: Item, other: fc.Arbitrary<Item>, weight: number) =>
  fc.oneof({ withCrossShrink: true }, { weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })

const rawConditions = often(0, fc.nat(100), 6)
const rawArgument: fc.Arbitrary<RawArgument> = fc.nat(40 * givens.length)
const rawArguments = fc.tuple(rawArgument, rawArgument, rawArgument, rawArgument, rawArgument)
const rawForm = often<RawNode['form']>('field', fc.constantFrom('spread', 'spread', 'inline', 'typed inline'), 3)
const rawAlias = fc.oneof(
  { withCrossShrink: true },
  { weight: 5, arbitrary: fc.constant(-1) },
  { weight: 3, arbitrary: fc.nat(3) },
  { weight: 2, arbitrary: fc.nat(aliases.length - 1) },
)

/** Selections with at most this many nodes per level, fields and inline fragments together. */
function rawNodes([most = 1, ...further]: readonly number[]): fc.Arbitrary<RawNode[]> {
  const inner: fc.Arbitrary<RawNode[]> = further.length === 0 ? fc.constant([]) : rawNodes(further)
  const node = fc.record(
    { form: rawForm, field: fc.nat(60), alias: rawAlias, args: rawArguments, conditions: rawConditions, inner },
    { noNullPrototype: true },
  )
  return fc.array(node, { minLength: 1, maxLength: most, size: 'max' })
}

const variablesPerType = 3
const variableTypes = ['Int', 'Boolean', 'ID', 'DateTime', 'String', 'OptionalString', 'Cursor'] as const
const variableCount = variablesPerType * variableTypes.length
const rawVariables: fc.Arbitrary<RawVariable[]> = fc.array(
  fc.record({ required: fc.boolean(), fallback: fc.option(fc.nat(40)), sent: rawArguments }, { noNullPrototype: true }),
  { minLength: variableCount, maxLength: variableCount },
)

const rawFragments: fc.Arbitrary<RawFragment[]> = fc.array(
  fc.record({ type: fc.nat(3), depth: fc.nat(3), nodes: rawNodes([3, 2, 2, 1]) }, { noNullPrototype: true }),
  { maxLength: 4, size: 'max' },
)

function rawOperations(levels: readonly number[]): fc.Arbitrary<RawOperation> {
  return fc.record({
    nodes: rawNodes(levels),
    fragments: rawFragments,
    variables: rawVariables,
    name: fc.nat(3),
    withFragments: fc.boolean(),
  })
}

const anyRaw = rawOperations([2, 3, 2, 2, 2, 1, 1])
const flatRaw = rawOperations([4, 3, 2, 1])

/** The rows that operations may name. */
type Rows = { readonly [Name in keyof Data]: readonly { readonly id: number }[] }

/** A valid query that may use the whole schema, up to the allowed depth, of usual size. */
export function anyQuery(data: Rows): fc.Arbitrary<Operation> {
  return anyRaw.map(raw => new Writer(raw, data).operation('Query'))
}

/** Several changes, some of which fail. `soon` are ids that may exist by then. */
export function anyMutation(data: Rows, soon: readonly string[]): fc.Arbitrary<Operation> {
  const ids = data.posts.map(({ id }) => String(id))
  const known = [...ids, ...ids, ...ids, ...ids, ...soon, ...impossibleIds.slice(0, 2)]
  return flatRaw.map(raw => new Writer(raw, data, known).operation('Mutation'))
}

interface Place {
  readonly level: number
  /** The place in the operation. Within one place, a key is always the same field. */
  readonly path: string
  /** The approximate number of objects in the answer. */
  readonly factor: number
  /** Only fragments after this one may be spread, so that there are no cycles. */
  readonly fragment: number
}

interface Written {
  readonly text: string
  readonly depth: number
}

interface Variable {
  readonly name: string
  readonly type: InputType
  readonly raw: RawVariable
}

const deepest = 5

/** Makes the operation from its raw form, for this data. */
class Writer {
  readonly #raw: RawOperation
  readonly #ids: readonly string[]
  readonly #cursors: readonly string[]
  readonly #meanings = new Map<string, { readonly field: Field; readonly args: string }>()
  readonly #fragments = new Map<RawFragment, Written & { readonly name: string }>()
  readonly #variables = new Map<string, Variable>()
  #root: Root = 'Query'

  /** With these ids to choose from, or with those of all posts and users. */
  constructor(raw: RawOperation, { users, posts, comments }: Rows, ids?: readonly string[]) {
    this.#raw = raw
    const known = [...posts, ...users].map(({ id }) => String(id))
    const further = ['1', '3', '7', '12', String(Number.MAX_SAFE_INTEGER)]
    this.#cursors = [...known, ...comments.map(({ id }) => String(id)), ...further]
    this.#ids = ids ?? [...known, ...known, ...impossibleIds]
  }

  operation(root: Root): Operation {
    this.#root = root
    const { text } = this.#selections(root, this.#raw.nodes, { level: 0, path: '', factor: 1, fragment: -1 })
    const whole = [text, ...this.#definitionsFor(text)].join(' ')
    const used = new Set(whole.match(/\$\w+/g))
    const variables = [...this.#variables.values()].filter(({ name }) => used.has(`$${name}`))
    const declared = variables.map(variable => this.#declaration(variable)).join(', ')
    const name = ['', ' N', ' query', ' __proto__'][this.#raw.name] ?? ''
    const head = `${root === 'Query' ? 'query' : 'mutation'}${name}${declared && `(${declared})`} `
    const sets = [0, 1, 2, 3].map(at =>
      Object.fromEntries(variables.flatMap(each => this.#sent(each, at).map(value => [each.name, value]))),
    )
    return { text: (head === 'query ' ? '' : head) + whole, variables: variables.length === 0 ? [{}] : sets }
  }

  #selections(type: Type, nodes: readonly RawNode[], place: Place): Written {
    const all = nodes.map(node => this.#node(type, node, place)).filter(written => written !== undefined)
    const text = all.length === 0 ? '__typename' : all.map(written => written.text).join(' ')
    return { text: `{ ${text} }`, depth: Math.max(0, ...all.map(({ depth }) => depth)) }
  }

  #node(type: Type, node: RawNode, place: Place): Written | undefined {
    const conditions = conditionsOf(node.conditions)
      .map(({ name, value }) => ` @${name}(if: ${value > 1 ? this.#variable('Boolean', value) : value === 1})`)
      .join('')
    if (node.form === 'field') return this.#field(type, node, conditions, place)
    const fragment = node.form === 'spread' ? this.#fragment(type, node.field, place) : undefined
    if (fragment !== undefined) return { text: `...${fragment.name}${conditions}`, depth: fragment.depth }
    if (node.inner.length === 0) return undefined
    const { text, depth } = this.#selections(type, node.inner, place)
    return { text: `...${node.form === 'typed inline' ? ` on ${type}` : ''}${conditions} ${text}`, depth }
  }

  #field(
    type: Type,
    { field: choice, alias, args: rawArgs, inner }: RawNode,
    conditions: string,
    place: Place,
  ): Written {
    const chosen = chosenField(type, choice, inner.length > 0)
    const key = alias < 0 ? chosen.name : (aliases[alias] ?? `k${alias - aliases.length}`)
    const meaning = `${this.#raw.withFragments ? type : place.path} ${key}`
    const known = this.#meanings.get(meaning)
    const field = known?.field ?? chosen
    if (field.to !== undefined && place.level >= (field.name === 'fields' ? 3 : deepest))
      return { text: `__typename${conditions}`, depth: 0 }
    const args = known?.args ?? this.#arguments(field, rawArgs, place)
    this.#meanings.set(meaning, { field, args })
    const head = `${key === field.name ? '' : `${key}: `}${field.name}${args}${conditions}`
    if (field.to === undefined) return { text: head, depth: 0 }
    const factor = place.factor * (field.many ? limitIn(args) : 1)
    const below = { ...place, level: place.level + 1, path: `${place.path} ${key}`, factor }
    const { text, depth } = this.#selections(field.to, inner, below)
    const isExempt = place.level === 0 && field.to.startsWith('__')
    return { text: `${head} ${text}`, depth: isExempt ? 0 : depth + 1 }
  }

  #fragment(type: Type, choice: number, place: Place): (Written & { readonly name: string }) | undefined {
    const { fragments, withFragments } = this.#raw
    const fitting = fragments.filter((raw, at) => withFragments && at > place.fragment && this.#typeOf(raw) === type)
    const fragment = fitting[choice % fitting.length]
    if (fragment === undefined) return undefined
    const written = this.#fragments.get(fragment) ?? this.#written(fragment)
    this.#fragments.set(fragment, written)
    return place.level + written.depth <= deepest ? written : undefined
  }

  #written(raw: RawFragment): Written & { readonly name: string } {
    const type = this.#typeOf(raw)
    const at = this.#raw.fragments.indexOf(raw)
    const level = type === this.#root ? 0 : deepest - raw.depth
    const body = this.#selections(type, raw.nodes, { level, path: '', factor: 10, fragment: at })
    return { ...body, name: fragmentNames[at] ?? `F${at}` }
  }

  #typeOf({ type }: RawFragment): Type {
    return (['Post', 'User', 'Comment'] as const)[type] ?? this.#root
  }

  /** The definitions of all fragments that a text uses, directly or indirectly. */
  #definitionsFor(text: string): readonly string[] {
    const found = new Set<string>()
    const follow = (from: string): void => {
      for (const [raw, fragment] of this.#fragments) {
        const definition = `fragment ${fragment.name} on ${this.#typeOf(raw)} ${fragment.text}`
        if (found.has(definition) || !` ${from} `.includes(`...${fragment.name} `)) continue
        found.add(definition)
        follow(fragment.text)
      }
    }
    follow(text)
    return [...found]
  }

  #arguments({ args = {} }: Field, raw: readonly RawArgument[], { factor }: Place): string {
    let isAfter = false
    const written = Object.entries(args).flatMap(([name, type], at) => {
      const { given, value } = argumentOf(raw[at] ?? 0)
      // With `after`, no other argument may set the start of the list. A third of the lists have `after`.
      if (type === 'Cursor' && value % 3 > 0) return []
      if (isAfter && name !== 'limit') return []
      // Most updates would be refused.
      if (name === 'ifUpdatedAt' && value % 3 > 0) return []
      isAfter ||= type === 'Cursor' && given !== 'not' && given !== 'null'
      // Long lists inside long lists would exceed the cost limit.
      if (name === 'limit' && factor >= 20) return [`limit: ${value % 3}`]
      if (given === 'variable') return [`${name}: ${this.#variable(type, value)}`]
      const isOptional = name === 'includeDeprecated' || !isNeeded(type)
      if (given === 'not' && isOptional) return []
      if (given === 'null' && !isNeeded(type)) return [`${name}: null`]
      return [`${name}: ${this.#literal(type, name, value)}`]
    })
    return written.length === 0 ? '' : `(${written.join(', ')})`
  }

  #literal(type: InputType, name: string, value: number): string {
    if (name === 'offset') return String(offsets[value % offsets.length])
    const literal = this.#value(type, value)
    // An id may also be written as a number.
    if (isId(type) && value % 2 === 0 && /^[1-9]\d*$/.test(String(literal))) return String(literal)
    return JSON.stringify(literal)
  }

  #value(type: InputType, value: number): unknown {
    const pick = <Item>(items: readonly Item[]) => items[value % items.length]
    switch (type) {
      case 'Int':
        return pick(limits)
      case 'Boolean':
        return value % 2 === 1
      case 'ID':
        return pick(this.#ids)
      case 'Cursor':
        return pick(this.#cursors)
      case 'DateTime':
        return pick(dateTimes)
      case 'String':
      case 'OptionalString':
        return pick(strings)
    }
  }

  #variable(type: InputType, value: number): string {
    const at = value % variablesPerType
    const id = `${type} ${at}`
    const known = this.#variables.get(id)
    if (known !== undefined) return `$${known.name}`
    const place = variableTypes.indexOf(type) * variablesPerType + at
    const raw = this.#raw.variables[place]
    if (raw === undefined) throw new Error('There are too few variables')
    const taken = new Set([...this.#variables.values()].map(({ name }) => name))
    const free = variableNames.filter(name => !taken.has(name))
    const name = free[(raw.fallback ?? 0) % free.length] ?? `v${place}`
    this.#variables.set(id, { name, type, raw })
    return `$${name}`
  }

  #declaration({ name, type, raw: { required, fallback } }: Variable): string {
    const head = `$${name}: ${isId(type) ? 'ID' : type.replace('Optional', '')}${required ? '!' : ''}`
    if (fallback === 0 && !required && !isNeeded(type)) return `${head} = null`
    const hasDefault = fallback !== null || (isNeeded(type) && !required)
    return hasDefault ? `${head} = ${JSON.stringify(this.#value(type, fallback ?? 0))}` : head
  }

  /** The value, if one is sent. */
  #sent({ type, raw }: Variable, at: number): readonly unknown[] {
    const { given, value } = argumentOf(raw.sent[at] ?? 0)
    if (given === 'not' && (!raw.required || raw.fallback !== null)) return []
    if (given === 'null' && !raw.required && !isNeeded(type)) return [null]
    const sent = this.#value(type, value)
    const isNumber = isId(type) && value % 2 === 0 && String(Number(sent)) === sent && Number.isInteger(Number(sent))
    return [isNumber ? Number(sent) : sent]
  }
}

function chosenField(type: Type, choice: number, leads: boolean): Field {
  const fields = fieldsOf[type]
  // If there are further levels, fields with subfields are chosen more often.
  const leading = fields.filter(({ to }) => to !== undefined)
  const among = leads && type !== 'Mutation' && choice % 3 > 0 ? leading : fields
  const chosen = among[Math.floor(choice / 3) % among.length]
  if (chosen === undefined) throw new Error(`${type} has no fields`)
  return chosen
}

function isId(type: InputType): boolean {
  return type === 'ID' || type === 'Cursor'
}

/** Whether the type is non-null. */
function isNeeded(type: InputType): boolean {
  return type === 'ID' || type === 'String' || type === 'Boolean'
}

function limitIn(args: string): number {
  const [, literal] = /limit: (\d+)/.exec(args) ?? []
  return literal === undefined ? 10 : Number(literal)
}
