import { type Access, notPermitted } from '../access.ts'
import type { Actor } from '../actor.ts'
import { AppError } from '../errors.ts'
import type { EventBus } from '../events.ts'
import {
  type Answer,
  type SelectedField,
  type SelectedObject,
  type Selection,
  type SlotValues,
  showsPrivate,
} from '../selection.ts'
import type { Change, ChangeResult, PostStore } from '../store.ts'
import { changeError, checkStoredBytes, checkTexts, type RequestedChange } from './change.ts'

export interface PostsParts {
  readonly store: PostStore
  readonly access: Access
  readonly bus: EventBus
}

/** Operations on posts and comments, and the rules about which fields of their authors a caller may read. */
export class Posts {
  readonly #parts: PostsParts

  constructor(parts: PostsParts) {
    this.#parts = parts
  }

  /** Throws at once if the actor may not read all selected fields. */
  read(actor: Actor, selection: Selection, values: SlotValues): Promise<Answer> {
    this.authorise(actor, selection, values)
    return this.#parts.store.select(selection, values)
  }

  /** Throws if the actor may not read all selected fields. It decides from the selection, before anything is read. */
  authorise(actor: Actor, { fields }: Selection, values: SlotValues): void {
    this.#parts.access.require(actor, 'read posts')
    if (fields.some(field => field.kind === 'one' && field.name === 'me'))
      this.#parts.access.require(actor, 'read oneself')
    if (this.#parts.access.allows(actor, "read others' e-mails")) return
    const isOwn = (field: SelectedObject) =>
      actor.kind === 'user' && (field.name === 'me' || field.name === 'user') && values[field.id ?? -1] === actor.id
    const shown = (field: SelectedField) =>
      (field.kind === 'one' && showsPrivate(field, isOwn(field) ? 'its own' : undefined)) ||
      (field.kind === 'many' && showsPrivate(field))
    if (fields.some(shown)) throw notPermitted(actor)
  }

  async change(actor: Actor, asked: readonly RequestedChange[]): Promise<readonly ChangeResult[]> {
    const changes = asked.map((change, at) => aboutChange(at, () => this.#authorised(actor, change)))
    checkStoredBytes(asked)
    for (const [at, change] of asked.entries()) aboutChange(at, () => checkTexts(change))
    let outcome = await this.#parts.store.changePosts(actor, changes)
    while (outcome === 'more') outcome = await this.#parts.store.changePosts(actor, changes)
    if ('refused' in outcome) throw changeError(outcome)
    this.#parts.bus.notify()
    return outcome
  }

  /** Only the store reads who the owner of a post or comment is, so it compares the owner with the reach. */
  #authorised(actor: Actor, change: RequestedChange): Change {
    const { access } = this.#parts
    const authorised = { ...change, reach: access.reach(actor, change.kind) }
    if (!('show' in change) || access.allows(actor, "read others' e-mails")) return authorised
    // In these changes the caller is the author, so the private fields of the author may be read.
    const readable = change.kind === 'create a post' || change.kind === 'add a comment' ? "its author's" : undefined
    if (change.show.selection.fields.some(field => field.kind === 'one' && showsPrivate(field, readable)))
      throw notPermitted(actor)
    return authorised
  }
}

/** Adds the index of the change to errors that `work` throws. */
function aboutChange<Outcome>(at: number, work: () => Outcome): Outcome {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, error.message, { cause: error.cause, at })
  }
}
