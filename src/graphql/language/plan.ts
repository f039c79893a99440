import type { GraphQLSchema } from 'graphql'
import type { Actor } from '../../core/actor.ts'
import { idOf } from '../../core/input.ts'
import type { SelectedField, Selection, Slot, SlotValues } from '../../core/selection.ts'
import type { Show } from '../../core/store.ts'
import { pageIn } from './limits/cost.ts'
import type { PlanSize } from './plans.ts'
import { type Argument, argumentIn, type Field, isIncluded, type Node, type Variables } from './tree.ts'

/** A selection, and functions that compute the values of its slots for each request. */
export interface Plan {
  readonly selection: Selection
  readonly slots: readonly Source[]
}

export interface Request {
  readonly schema: GraphQLSchema
  readonly variables: Variables
  readonly actor: Actor
  readonly introspected: { fields: number }
}

export type Source = (request: Request) => SlotValues[number]

export function valuesOf({ slots }: Plan, request: Request): SlotValues {
  return slots.map(source => source(request))
}

/** Fields with the same key. They are the same field, but each has its own selections. */
export type Merged = readonly [Field, ...Field[]]

/** The fields of one object in the answer by their keys, in the order in which the keys first appear. */
export type Collected = ReadonlyMap<string, Merged>

/** Evaluates `@skip` and `@include`, resolves fragments and groups the fields with the same key. */
export function collect(selections: readonly (readonly Node[])[], variables: Variables): Collected {
  const collected = new Map<string, [Field, ...Field[]]>()
  const visited = new Set<readonly Node[]>()
  const visit = (nodes: readonly Node[]): void => {
    if (visited.has(nodes)) return // a second visit would add nothing
    visited.add(nodes)
    for (const node of nodes) {
      if (!isIncluded(node, variables)) continue
      if (node.kind === 'spread') visit(node.fragment.selections)
      else {
        const known = collected.get(node.key)
        if (known === undefined) collected.set(node.key, [node])
        else known.push(node)
      }
    }
  }
  selections.forEach(visit)
  return collected
}

/** Builds selections, and records where the value of each slot comes from. */
export class Planner {
  readonly #variables: Variables
  readonly #size: PlanSize
  readonly slots: Source[] = []

  constructor(variables: Variables, size: PlanSize) {
    this.#variables = variables
    this.#size = size
  }

  inside(fields: readonly Field[]): readonly SelectedField[] {
    const selections = fields.map(field => field.selections)
    const collected = collect(selections, this.#variables)
    return [...collected].map(([key, merged]) => this.#selected(key, merged))
  }

  /** A top-level field that reads: `user`, `post`, `me`, `posts`, `users`. */
  atTop(key: string, fields: Merged): SelectedField {
    const [{ kind, args }] = fields
    if (kind !== 'one') return this.#selected(key, fields)
    const id = args.get('id')
    const source: Source = id === undefined ? ownId : ({ variables }) => idIn(id, variables)
    return this.#selected(key, fields, this.slot(source))
  }

  slot(source: Source): number {
    return this.slots.push(source) - 1
  }

  /** `id`: the slot of an object at the top. */
  #selected(key: string, fields: Merged, id?: Slot): SelectedField {
    const [first] = fields
    if (first.kind !== 'many') this.#size.add()
    switch (first.kind) {
      case 'typename':
        return { kind: 'text', key, text: first.type }
      case 'value':
        return { kind: 'value', key, name: first.name }
      case 'one':
        return { kind: 'one', key, name: first.name, id, fields: this.inside(fields) }
      case 'many':
        return this.#many(key, fields)
      case 'introspection':
        throw new Error('Introspection fields are allowed at the top level only')
    }
  }

  #many(key: string, fields: Merged): SelectedField {
    const [first] = fields
    const page = pageIn(first, this.#variables)
    this.#size.add(page.limit > 0)
    if (page.limit === 0) return { kind: 'empty list', key }
    // Only one of the two gets a slot: PostgreSQL refuses parameters that a statement does not use.
    const start = page.after === undefined ? 'offset' : 'after'
    const limit = this.slot(({ variables }) => pageIn(first, variables).limit)
    return {
      kind: 'many',
      key,
      name: first.name,
      limit,
      offset: undefined,
      after: undefined,
      [start]: this.slot(({ variables }) => pageIn(first, variables)[start] ?? null),
      publishedAfter: this.#instant(first.args.get('publishedAfter')),
      publishedBefore: this.#instant(first.args.get('publishedBefore')),
      fields: this.inside(fields),
    }
  }

  #instant(argument: Argument | undefined): number | undefined {
    const given = argumentIn(argument, this.#variables) ?? undefined
    return given === undefined ? undefined : this.slot(({ variables }) => String(argumentIn(argument, variables)))
  }
}

const ownId: Source = ({ actor }) => (actor.kind === 'user' ? actor.id : null)

/** The id in an argument, or null if it is not a valid id. */
export function idIn(argument: Argument | undefined, variables: Variables): number | null {
  return idOf(String(argumentIn(argument, variables))) ?? null
}

/** Plans what to return about a post or comment whose id is known only later. */
export function planShown(
  root: 'post' | 'comment',
  key: string,
  fields: Merged,
  variables: Variables,
  size: PlanSize,
): Plan & Pick<Show, 'id'> {
  const planner = new Planner(variables, size)
  const id = planner.slot(() => null)
  size.add()
  const selection: Selection = { fields: [{ kind: 'one', key, name: root, id, fields: planner.inside(fields) }] }
  return { selection, slots: planner.slots, id }
}

export function showOf({ id, ...plan }: ReturnType<typeof planShown>, request: Request): Show {
  return { selection: plan.selection, values: valuesOf(plan, request), id }
}
