import type { GraphQLSchema } from 'graphql'
import { badInput, idOf } from '../../../core/input.ts'
import { argumentIn, type Field, type Fragment, isIncluded, type Node, type Variables } from '../tree.ts'
import { answerSizes } from './introspection.ts'

export const listBounds = Object.freeze({ limit: 1000, offset: 100_000, defaultLimit: 10 })

/** The costs of an operation, for reading data and for introspection (see `introspection.ts`). */
export interface Cost {
  readonly data: number
  readonly introspection: number
}

/**
 * The cost of an operation with these variables. A scalar field costs 1, an object field 5 plus its selection, a list
 * its selection times its limit (default 10). Fields that `@skip` and `@include` leave out cost nothing; fields that
 * occur twice cost twice. Each fragment is evaluated once and counted at every spread. All arguments are checked on the
 * way, those of lists against their ranges, so that no argument can lower a cost.
 */
export function costOf(nodes: readonly Node[], variables: Variables, schema: GraphQLSchema): Cost {
  const known = new Map<Fragment, Cost>()
  let sizeOfAnswer: ((question: Field) => number) | undefined

  const ofAll = (all: readonly Node[]): Cost => {
    let [data, introspection] = [0, 0]
    for (const node of all) {
      if (!isIncluded(node, variables)) continue
      const cost = node.kind === 'spread' ? ofFragment(node.fragment) : ofField(node)
      data += cost.data
      introspection += cost.introspection
    }
    return { data, introspection }
  }

  const ofFragment = (fragment: Fragment): Cost => {
    let cost = known.get(fragment)
    if (cost === undefined) {
      cost = ofAll(fragment.selections)
      known.set(fragment, cost)
    }
    return cost
  }

  const ofField = (field: Field): Cost => {
    for (const argument of field.args.values()) argumentIn(argument, variables)
    if (field.kind === 'value' || field.kind === 'typename') return scalar
    if (field.kind === 'introspection') {
      sizeOfAnswer ??= answerSizes(schema, variables)
      return { data: 0, introspection: sizeOfAnswer(field) }
    }
    const { data, introspection } = ofAll(field.selections)
    if (field.kind === 'one') return { data: 5 + data, introspection }
    // Rows are read even if nothing of them is selected.
    return { data: pageIn(field, variables).limit * Math.max(1, data), introspection }
  }

  return ofAll(nodes)
}

const scalar: Cost = { data: 1, introspection: 0 }

/** The page of a list that its arguments request. Either `after` or `offset` says where it starts. */
export interface RequestedPage {
  readonly limit: number
  readonly offset: number
  readonly after: number | undefined
}

export function pageIn({ args }: Pick<Field, 'args'>, variables: Variables): RequestedPage {
  const given = (name: string) => argumentIn(args.get(name), variables) ?? undefined
  const limit = within('limit', given('limit'), listBounds.defaultLimit)
  const offset = within('offset', given('offset'), 0)
  const text = given('after')
  if (text === undefined) return { limit, offset, after: undefined }
  const after = idOf(String(text))
  if (after === undefined) throw badInput('after must be an id')
  const other = ['offset', 'publishedAfter', 'publishedBefore'].find(name => given(name) !== undefined)
  if (other !== undefined) throw badInput(`after cannot be combined with ${other}`)
  return { limit, offset, after }
}

function within(name: 'limit' | 'offset', value: unknown, fallback: number): number {
  const number = Number(value ?? fallback)
  if (number >= 0 && number <= listBounds[name]) return number
  throw badInput(`${name} must be an integer from 0 to ${listBounds[name]}`)
}
