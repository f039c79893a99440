import fc from 'fast-check'
import type { Data } from '../../test/graphql/support/data.ts'
import { anyQuery } from '../../test/graphql/support/operations.ts'
import { type Candidate, operation } from './candidates.ts'
import type { Places } from './selections.ts'

/** A field with its selection. Lists have a limit. */
interface Branch {
  readonly name: string
  readonly limit?: number
  readonly offset?: number
  /** How many times it is there, under as many names. */
  readonly times: number
  readonly inner: readonly Branch[]
}

type Type = 'Query' | 'User' | 'Post' | 'Comment'

const scalars: Readonly<Record<Type, readonly string[]>> = {
  Query: ['__typename'],
  User: ['id', 'name', 'avatar', 'createdAt'],
  Post: ['id', 'title', 'content', 'likes', 'commentCount', 'publishedAt', '__typename'],
  Comment: ['id', 'text', 'createdAt'],
}
const objects: Readonly<Record<Type, readonly (readonly [name: string, to: Type, many: boolean])[]>> = {
  Query: [
    ['posts', 'Post', true],
    ['post', 'Post', false],
    ['user', 'User', false],
    ['users', 'User', true],
  ],
  User: [['posts', 'Post', true]],
  Post: [
    ['author', 'User', false],
    ['comments', 'Comment', true],
  ],
  Comment: [
    ['author', 'User', false],
    ['post', 'Post', false],
  ],
}

/** The most that an operation may cost, less what its tag costs. */
const budget = 998
const mostSkipped = 99_000
const mostLists = 190
const deepest = 4

const below = (most: number) => Math.floor(Math.random() * most)
const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
/** Small numbers and large ones alike. */
const anySize = (most: number) => Math.floor(most ** Math.random())

/** A random operation, or a small change of an expensive one. */
export class RandomOperations {
  readonly #places: Places
  readonly #branches = new WeakMap<Candidate, readonly Branch[]>()
  #made = 0

  constructor(places: Places) {
    this.#places = places
  }

  next(dearest: readonly Candidate[]): Candidate {
    const parent = Math.random() < 0.6 && dearest.length > 0 ? this.#branches.get(oneOf(dearest)) : undefined
    let branches = parent === undefined ? this.#grow('Query', 0) : this.#change(parent, 'Query', 0)
    while (!isAllowed(branches)) branches = shrink(branches)
    const candidate = operation(`random ${++this.#made}`, `{ TAG: __typename ${this.#write(branches)} }`)
    this.#branches.set(candidate, branches)
    return candidate
  }

  #grow(type: Type, level: number): readonly Branch[] {
    const count = Math.random() < 0.3 ? anySize(8) : 1
    return Array.from({ length: count }, () => this.#branch(type, level))
  }

  #branch(type: Type, level: number): Branch {
    const times = Math.random() < 0.3 ? anySize(200) : 1
    if (level > 0 && (level >= deepest || Math.random() < 0.35)) return { name: oneOf(scalars[type]), times, inner: [] }
    const [name, to, many] = oneOf(objects[type])
    const inner = this.#grow(to, level + 1)
    if (!many) return { name, times, inner }
    return { name, times, inner, limit: anySize(1000), offset: Math.random() < 0.4 ? anySize(100_000) : 0 }
  }

  #change(branches: readonly Branch[], type: Type, level: number): readonly Branch[] {
    const at = below(branches.length)
    const chosen = branches[at]
    if (chosen === undefined || Math.random() < 0.2) return [...branches.slice(1), this.#branch(type, level)]
    const to = objects[type].find(([name]) => name === chosen.name)?.[1]
    const changed =
      to !== undefined && Math.random() < 0.5
        ? { ...chosen, inner: this.#change(chosen.inner, to, level + 1) }
        : { ...chosen, ...(Math.random() < 0.5 ? { times: anySize(200) } : chosen.limit && { limit: anySize(1000) }) }
    return branches.with(at, changed)
  }

  #write(branches: readonly Branch[], top = true): string {
    let names = 0
    const { author, latest } = this.#places
    return branches
      .flatMap(branch => {
        const { name, limit, offset, times, inner } = branch
        const args =
          limit !== undefined
            ? `(limit: ${limit}${offset ? `, offset: ${offset}` : ''})`
            : top && (name === 'post' || name === 'user')
              ? `(id: ${name === 'post' ? latest : author})`
              : ''
        const selection = inner.length === 0 ? '' : ` { ${this.#write(inner, false)} }`
        return Array.from({ length: times }, () => `a${++names}: ${name}${args}${selection}`)
      })
      .join(' ')
  }
}

function isAllowed(branches: readonly Branch[]): boolean {
  return (
    sumOf(branches, costOf) <= budget &&
    sumOf(branches, branch => skippedBy(branch, 1)) <= mostSkipped &&
    sumOf(branches, listsIn) <= mostLists &&
    sumOf(branches, tokensIn) <= 1900
  )
}

function sumOf(branches: readonly Branch[], of: (branch: Branch) => number): number {
  return branches.reduce((sum, branch) => sum + branch.times * of(branch), 0)
}

function costOf({ limit, inner }: Branch): number {
  if (inner.length === 0) return 1
  return limit === undefined ? 5 + sumOf(inner, costOf) : limit * sumOf(inner, costOf)
}

function skippedBy({ limit = 1, offset = 0, inner }: Branch, factor: number): number {
  return factor * offset + sumOf(inner, branch => skippedBy(branch, factor * limit))
}

function listsIn({ limit, inner }: Branch): number {
  return (limit === undefined ? 0 : 1) + sumOf(inner, listsIn)
}

function tokensIn({ limit, inner }: Branch): number {
  return 3 + (limit === undefined ? 5 : 8) + (inner.length === 0 ? 0 : 2 + sumOf(inner, tokensIn))
}

/** Takes off a part of every number. */
function shrink(branches: readonly Branch[]): readonly Branch[] {
  const less = (number: number) => Math.max(1, Math.floor(number * (0.6 + 0.4 * Math.random())))
  return branches.map(branch => ({
    ...branch,
    times: less(branch.times),
    ...(branch.limit && { limit: less(branch.limit) }),
    ...(branch.offset && { offset: Math.floor(branch.offset * 0.7) }),
    inner: shrink(branch.inner),
  }))
}

/** Of the operations that the tests of the compiler are made of: every feature of the language, at small sizes. */
export function testOperations({ author, latest }: Places, count: number): readonly Candidate[] {
  const at = '2026-01-31T12:00:00.000Z'
  const data: Data = {
    users: [{ id: author, name: 'User', email: 'u@example.com', avatar: null, createdAt: at }],
    posts: [{ id: latest, authorId: author, title: 'T', content: 'C', likes: 0, publishedAt: at }],
    comments: [],
  }
  return fc
    .sample(anyQuery(data), count)
    .map(({ text, variables }, index) => operation(`test ${index}`, text, variables[0]))
}
