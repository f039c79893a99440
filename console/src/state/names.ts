import { signal } from '@preact/signals'
import { api } from '../client.ts'
import { visits } from './session.ts'

/** The names of users, by their ids. */
export const names = signal<ReadonlyMap<number, string>>(new Map())

visits.subscribe(() => {
  names.value = new Map()
})

export function nameKnown(users: readonly { readonly id: number; readonly name: string }[]): void {
  names.value = new Map([...names.peek(), ...users.map(({ id, name }) => [id, name] as const)])
}

/** Reads the names that are not known yet, all with one request. Without an answer the ids are shown. */
export async function readNames(ids: Iterable<number | null>): Promise<void> {
  const unknown = [...new Set(ids)].filter(id => id !== null && !names.peek().has(id))
  if (unknown.length === 0) return
  const fields = unknown.map(id => `u${id}: user(id: ${id}) { name }`)
  const found = await api.graphql.query<Record<string, { name: string } | null>>(`query Names { ${fields.join(' ')} }`)
  nameKnown(unknown.flatMap(id => (id === null ? [] : [{ id, name: found[`u${id}`]?.name ?? `User ${id}` }])))
}
