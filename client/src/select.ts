import type { Duet } from './connect.ts'
import { graphql } from './graphql.ts'
import { live } from './live.ts'
import { operation } from './operation.ts'
import type { Subscription as Events, Mutation, Query } from './schema.ts'
import type { Known, Selected, Selection } from './selection.ts'
import type { Subscription, Watcher } from './watch.ts'

/** Reads the selected fields. */
export async function query<const S extends Selection<Query>>(
  duet: Duet,
  selection: Known<Query, S>,
  options?: { readonly signal?: AbortSignal },
): Promise<Selected<Query, S>> {
  const { text, variables } = operation('Query', selection)
  return graphql(duet).query<Selected<Query, S>>(text, variables, options)
}

/** Changes data, and reads the selected fields of the result. */
export async function mutate<const S extends Selection<Mutation>>(
  duet: Duet,
  selection: Known<Mutation, S>,
  options?: { readonly signal?: AbortSignal },
): Promise<Selected<Mutation, S>> {
  const { text, variables } = operation('Mutation', selection)
  return graphql(duet).mutate<Selected<Mutation, S>>(text, variables, options)
}

/** Gets the selected fields of each event. */
export function subscribe<const S extends Selection<Events>>(
  duet: Duet,
  selection: Known<Events, S>,
  watcher: Watcher<Selected<Events, S>>,
): Subscription {
  const { text, variables } = operation('Subscription', selection)
  return live(duet).subscribe(text, variables, watcher)
}

/** Like `subscribe`, but for `for await`. */
export function iterate<const S extends Selection<Events>>(
  duet: Duet,
  selection: Known<Events, S>,
  options?: Pick<Watcher<Selected<Events, S>>, 'onReadAnew' | 'after'>,
): AsyncIterableIterator<Selected<Events, S>> {
  const { text, variables } = operation('Subscription', selection)
  return live(duet).iterate<Selected<Events, S>>(text, variables, options)
}
