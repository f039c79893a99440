import { badInput, idOf, integer } from '../../../core/input.ts'
import { pageBounds } from '../../../core/page.ts'
import { refusal } from '../../errors.ts'
import { argumentIn, type Field, type Fragment, isIncluded, type Node, type Variables } from '../tree.ts'

export interface Cost {
  readonly cost: number
  /** The rows that its lists skip at most: the offset of each, once for each item of the lists around it. */
  readonly skipped: number
}

/**
 * The cost of an operation with these variables. A scalar field costs 1, an object field 5 plus its selection, a list
 * its selection times its limit (default 10). Fields that `@skip` and `@include` leave out cost nothing, and neither
 * does introspection; fields that occur twice cost twice. Each fragment is evaluated once and counted at every spread.
 * All arguments are checked on the way, those of lists against their ranges, so that no argument can lower a cost.
 */
export function costOf(nodes: readonly Node[], variables: Variables): Cost {
  let known: Map<Fragment, Cost> | undefined

  const ofAll = (all: readonly Node[]): Cost => {
    let [cost, skipped] = [0, 0]
    for (const node of all) {
      if (!isIncluded(node, variables)) continue
      const each = node.kind === 'spread' ? ofFragment(node.fragment) : ofField(node)
      cost += each.cost
      skipped += each.skipped
    }
    return { cost, skipped }
  }

  const ofFragment = (fragment: Fragment): Cost => {
    known ??= new Map()
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
    if (field.kind === 'introspection') return free
    const inner = ofAll(field.selections)
    if (field.kind === 'one') return { cost: 5 + inner.cost, skipped: inner.skipped }
    const { limit, offset } = pageIn(field, variables)
    // Rows are read even if nothing of them is selected.
    return limit === 0 ? free : { cost: limit * Math.max(1, inner.cost), skipped: offset + limit * inner.skipped }
  }

  return ofAll(nodes)
}

const scalar: Cost = { cost: 1, skipped: 0 }
const free: Cost = { cost: 0, skipped: 0 }

export const mostSkippedRows = 100_000

/** Refuses an operation that costs too much. Its cost does not include the rows that the database skips, but reads. */
export function checkCost({ cost: sum, skipped }: Cost, limit: number): void {
  if (sum > limit) {
    // Fragments within fragments can make the cost larger than a number can hold.
    const cost = Math.min(sum, Number.MAX_SAFE_INTEGER)
    throw refusal('COMPLEXITY_LIMIT_EXCEEDED', `The operation costs ${cost}; ${limit} is allowed.`, { cost, limit })
  }
  if (skipped <= mostSkippedRows) return
  const message = `The operation skips ${skipped} rows; ${mostSkippedRows} are allowed.`
  throw refusal('BAD_USER_INPUT', message, { skipped, limit: mostSkippedRows })
}

/** The page of a list that its arguments request. Either `after` or `offset` says where it starts. */
export function pageIn({ args }: Pick<Field, 'args'>, variables: Variables) {
  const given = (name: string) => argumentIn(args.get(name), variables) ?? undefined
  const limit = integer('limit', given('limit') ?? defaultLimit, 0, pageBounds.limit)
  const offset = integer('offset', given('offset') ?? 0, 0, pageBounds.offset)
  const text = given('after')
  if (text === undefined) return { limit, offset, after: undefined }
  const after = idOf(String(text))
  if (after === undefined) throw badInput('after must be an id')
  const other = ['offset', 'publishedAfter', 'publishedBefore'].find(name => given(name) !== undefined)
  if (other !== undefined) throw badInput(`after cannot be combined with ${other}`)
  return { limit, offset, after }
}

const defaultLimit = 10
