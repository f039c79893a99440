import { privateFields } from './entities.ts'

/**
 * What a read wants: a tree of values and relations, free of GraphQL and of SQL. What may differ between two requests of
 * the same shape (ids, limits) is not in the tree, which only names its slot: the place of the value in a list beside it.
 * So one tree, and what is made of it, serves many requests.
 */
export interface Selection {
  readonly wishes: readonly Wish[]
}

/** One entry of an object in the answer, under its `key`. */
export type Wish = ValueWish | TextWish | JsonWish | OneWish | ManyWish | EmptyWish

export interface ValueWish {
  readonly kind: 'value'
  readonly key: string
  readonly name: string
}

/** The same text, whatever is read. */
export interface TextWish {
  readonly kind: 'text'
  readonly key: string
  readonly text: string
}

/** JSON that is there already. */
export interface JsonWish {
  readonly kind: 'json'
  readonly key: string
  readonly slot: Slot
}

/** A related object, or null. At the top, where nothing relates to anything, the one with the id in the slot. */
export interface OneWish {
  readonly kind: 'one'
  readonly key: string
  readonly name: string
  readonly id: Slot | undefined
  readonly wishes: readonly Wish[]
}

/** Some of the related objects, or of all. */
export interface ManyWish {
  readonly kind: 'many'
  readonly key: string
  readonly name: string
  readonly limit: Slot
  readonly offset: Slot
  readonly after: Slot | undefined
  readonly before: Slot | undefined
  readonly wishes: readonly Wish[]
}

/** A list of none. */
export interface EmptyWish {
  readonly kind: 'empty'
  readonly key: string
}

export type Slot = number

/** What fills the slots. */
export type SlotValues = readonly (string | number | null)[]

/**
 * Whether an object shows a private field, of itself or of any object that it leads to. `except` are those that may be seen
 * anyway: the object's own, or those of its author.
 */
export function showsPrivate({ wishes }: OneWish | ManyWish, except?: 'its own' | "its author's"): boolean {
  return wishes.some(wish => {
    if (wish.kind === 'value') return privateFields.has(wish.name) && except !== 'its own'
    if (wish.kind !== 'one' && wish.kind !== 'many') return false
    return showsPrivate(wish, wish.name === 'author' && except === "its author's" ? 'its own' : undefined)
  })
}
