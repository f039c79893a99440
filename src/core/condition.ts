import { AppError } from './errors.ts'

/** A resource, and a text that identifies its state: equal states have equal revisions, on every instance. */
export interface Revised<Item> {
  readonly item: Item
  readonly revision: string
}

/** What a write requires of the resource that it changes. The store checks it in the transaction of the write. */
export interface Condition {
  /** The resource exists, and its revision is one of these. */
  readonly match?: Revisions
  /** The resource does not exist, or its revision is none of these. */
  readonly noneMatch?: Revisions
}

export type Revisions = 'any' | readonly string[]

export const unconditional: Condition = Object.freeze({})

export type Unmet = 'changed' | 'exists'

/** Returns what a condition lacks, if anything. `revision` is called if it is needed, and returns nothing if absent. */
export function unmet({ match, noneMatch }: Condition, revision: () => string | undefined): Unmet | undefined {
  if (match !== undefined && !includes(match, revision())) return 'changed'
  if (noneMatch !== undefined && includes(noneMatch, revision())) return 'exists'
  return undefined
}

function includes(revisions: Revisions, revision: string | undefined): boolean {
  return revision !== undefined && (revisions === 'any' || revisions.includes(revision))
}

export function unmetCondition(resource: 'user' | 'order', unmet: Unmet): AppError {
  const what = unmet === 'changed' ? 'has changed' : 'exists already'
  return new AppError('condition-unmet', `The ${resource} ${what}`)
}
