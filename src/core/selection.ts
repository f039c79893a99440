import { privateFields } from './entities.ts'

/**
 * The fields and relations that a read selects, as a tree that knows neither GraphQL nor SQL. Values that may differ
 * between two requests of the same shape (ids, limits) are not in the tree. The tree contains only their slots, which
 * are indexes into a separate list of values. So one tree, and the SQL compiled from it, serves many requests.
 */
export interface Selection {
  readonly fields: readonly SelectedField[]
}

/**
 * One selected field: an entry of an object in the response, under its `key`. A `text` is a constant. `json` exists
 * already and is inserted as it is.
 */
export type SelectedField =
  | { readonly kind: 'value'; readonly key: string; readonly name: string }
  | { readonly kind: 'text'; readonly key: string; readonly text: string }
  | { readonly kind: 'json'; readonly key: string; readonly slot: Slot }
  | { readonly kind: 'empty list'; readonly key: string }
  | SelectedObject
  | SelectedList

/** A related object, or null. At the root it is the object whose id is in the slot. */
export interface SelectedObject {
  readonly kind: 'one'
  readonly key: string
  readonly name: string
  readonly id: Slot | undefined
  readonly fields: readonly SelectedField[]
}

/** A page of the related objects; at the root, of all objects. */
export interface SelectedList {
  readonly kind: 'many'
  readonly key: string
  readonly name: string
  readonly limit: Slot
  /** How many items come before the page. Undefined if `after` says where it begins. */
  readonly offset: Slot | undefined
  /** The id after which the page begins, in the order of the list. */
  readonly after: Slot | undefined
  readonly publishedAfter: Slot | undefined
  readonly publishedBefore: Slot | undefined
  readonly fields: readonly SelectedField[]
}

/** The JSON of an answer: a text, or the bytes of a long one, which HTTP sends as they are. */
export type Answer = string | Uint8Array

/** Node makes a text of bytes five times as fast as V8. */
export function answerText(answer: Answer): string {
  if (typeof answer === 'string') return answer
  return Buffer.from(answer.buffer, answer.byteOffset, answer.length).toString()
}

export type Slot = number

export type SlotValues = readonly (string | number | null)[]

/**
 * Whether the selection contains a private field, of the object itself or of any object below it. `except` names
 * private fields that the caller may read anyway: those of the object itself, or those of its author.
 */
export function showsPrivate({ fields }: SelectedObject | SelectedList, except?: 'its own' | "its author's"): boolean {
  return fields.some(field => {
    if (field.kind === 'value') return privateFields.has(field.name) && except !== 'its own'
    if (field.kind !== 'one' && field.kind !== 'many') return false
    return showsPrivate(field, field.name === 'author' && except === "its author's" ? 'its own' : undefined)
  })
}
