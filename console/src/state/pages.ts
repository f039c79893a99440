import { type Signal, signal } from '@preact/signals'
import type { PageOptions, Pages } from '../../../client/src/index.ts'
import { visits } from './session.ts'

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly more: boolean
  /** What the list is filtered by, as a text. */
  readonly filter: string
  /** The `after` ids of this page and of all pages before it; `undefined` for the first page. */
  readonly trail: readonly (number | undefined)[]
}

export type KeptPage<Item> = Signal<Page<Item> | undefined>

/** Reads a page of a list. */
export type ReadList<Item> = (options: PageOptions) => Pick<Pages<Item>, 'first'>

/** The page that a view shows. Who leaves the view and comes back finds it again; the next user does not. */
export function keptPage<Item>(): KeptPage<Item> {
  const page = signal<Page<Item> | undefined>(undefined)
  visits.subscribe(() => {
    page.value = undefined
  })
  return page
}

/**
 * The answer, for what goes on after it. If another user has signed in or out meanwhile, it never goes on: the answer
 * is not for that user.
 */
export function ofThisVisit<Answer>(answer: Promise<Answer>): Promise<Answer> {
  const visit = visits.peek()
  return new Promise((resolve, reject) => {
    const during =
      <Value>(goOn: (value: Value) => void) =>
      (value: Value) => {
        if (visits.peek() === visit) goOn(value)
      }
    answer.then(during(resolve), during(reject))
  })
}
