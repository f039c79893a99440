import { type Access, notPermitted } from '../access.ts'
import type { Actor } from '../actor.ts'
import { AppError } from '../errors.ts'
import type { EventBus } from '../events.ts'
import { type SelectedField, type SelectedObject, type Selection, type SlotValues, showsPrivate } from '../selection.ts'
import type { Change, ChangeResult, PostStore } from '../store.ts'
import {
  changeError,
  checkStoredBytes,
  checkTexts,
  isByCaller,
  isForOwner,
  operationOf,
  type RequestedChange,
} from './change.ts'

export interface PostsParts {
  readonly store: PostStore
  readonly access: Access
  readonly bus: EventBus
}

/** Operations on posts and comments, and the rules about which fields of their authors a caller may read. */
export class Posts {
  readonly #store: PostStore
  readonly #access: Access
  readonly #bus: EventBus

  constructor({ store, access, bus }: PostsParts) {
    this.#store = store
    this.#access = access
    this.#bus = bus
  }

  /** Throws at once if the actor may not read all selected fields. */
  read(actor: Actor, selection: Selection, values: SlotValues): Promise<string> {
    this.authorise(actor, selection, values)
    return this.#store.select(selection, values)
  }

  /** Throws if the actor may not read all selected fields. It decides from the selection, before anything is read. */
  authorise(actor: Actor, { fields }: Selection, values: SlotValues): void {
    this.#access.require(actor, 'read posts')
    if (fields.some(field => field.kind === 'one' && field.name === 'me')) this.#access.require(actor, 'read oneself')
    if (this.#access.allows(actor, "read others' e-mails")) return
    const isOwn = (field: SelectedObject) =>
      actor.kind === 'user' && isUser(field) && values[field.id ?? -1] === actor.id
    const shown = (field: SelectedField) =>
      (field.kind === 'one' && showsPrivate(field, isOwn(field) ? 'its own' : undefined)) ||
      (field.kind === 'many' && showsPrivate(field))
    if (fields.some(shown)) throw notPermitted(actor)
  }

  async change(actor: Actor, asked: readonly RequestedChange[]): Promise<readonly ChangeResult[]> {
    for (const [at, change] of asked.entries()) aboutChange(at, () => this.#authoriseChange(actor, change))
    checkStoredBytes(asked)
    const changes = asked.map((change, at) => aboutChange(at, () => this.#checked(actor, change)))
    const outcome = await this.#store.changePosts(actor, changes)
    if ('refused' in outcome) throw changeError(outcome)
    this.#bus.notify()
    return outcome
  }

  #authoriseChange(actor: Actor, change: RequestedChange): void {
    const operation = operationOf[change.kind]
    if (isForOwner(change)) this.#access.reach(actor, operation)
    else this.#access.require(actor, operation)
    if (!('show' in change) || this.#access.allows(actor, "read others' e-mails")) return
    const readable = isByCaller[change.kind] ? "its author's" : undefined
    if (change.show.selection.fields.some(field => field.kind === 'one' && showsPrivate(field, readable)))
      throw notPermitted(actor)
  }

  #checked(actor: Actor, change: RequestedChange): Change {
    checkTexts(change)
    return isForOwner(change) ? { ...change, reach: this.#access.reach(actor, operationOf[change.kind]) } : change
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

function isUser({ name }: SelectedObject): boolean {
  return name === 'me' || name === 'user'
}
