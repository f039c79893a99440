import { badInput, idOf } from '../../../core/input.ts'
import { refusal } from '../../errors.ts'
import { argumentIn, type Field, type Fragment, isIncluded, type Node, type Variables } from '../tree.ts'

export const listBounds = Object.freeze({ limit: 1000, offset: 100_000, defaultLimit: 10 })

/**
 * The cost of an operation with these variables. A scalar field costs 1, an object field 5 plus its selection, a list
 * its selection times its limit (default 10). Fields that `@skip` and `@include` leave out cost nothing, and neither
 * does introspection; fields that occur twice cost twice. Each fragment is evaluated once and counted at every spread.
 * All arguments are checked on the way, those of lists against their ranges, so that no argument can lower a cost.
 */
export function costOf(nodes: readonly Node[], variables: Variables): number {
  const known = new Map<Fragment, number>()

  const ofAll = (all: readonly Node[]): number => {
    let sum = 0
    for (const node of all) {
      if (isIncluded(node, variables)) sum += node.kind === 'spread' ? ofFragment(node.fragment) : ofField(node)
    }
    return sum
  }

  const ofFragment = (fragment: Fragment): number => {
    let cost = known.get(fragment)
    if (cost === undefined) {
      cost = ofAll(fragment.selections)
      known.set(fragment, cost)
    }
    return cost
  }

  const ofField = (field: Field): number => {
    for (const argument of field.args.values()) argumentIn(argument, variables)
    switch (field.kind) {
      case 'value':
      case 'typename':
        return 1
      case 'introspection':
        return 0
      case 'one':
        return 5 + ofAll(field.selections)
      case 'many':
        // Rows are read even if nothing of them is selected.
        return pageIn(field, variables).limit * Math.max(1, ofAll(field.selections))
    }
  }

  return ofAll(nodes)
}

/** Refuses an operation that costs too much. */
export function checkCost(sum: number, limit: number): void {
  if (sum <= limit) return
  // Fragments within fragments can make the cost larger than a number can hold.
  const cost = Math.min(sum, Number.MAX_SAFE_INTEGER)
  throw refusal('COMPLEXITY_LIMIT_EXCEEDED', `The operation costs ${cost}; ${limit} is allowed.`, { cost, limit })
}

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
