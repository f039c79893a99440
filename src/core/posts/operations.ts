import { type Access, invalidToken, notPermitted } from '../access.ts'
import type { Actor } from '../actor.ts'
import { AppError } from '../errors.ts'
import type { EventBus } from '../events.ts'
import { badInput, nonBlankText } from '../input.ts'
import { type SelectedField, type SelectedObject, type Selection, type SlotValues, showsPrivate } from '../selection.ts'
import type { Change, ChangeRefusal, ChangeResult, PostStore } from '../store.ts'
import { mostStoredBytes, postBounds } from './post.ts'

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

  async read(actor: Actor, selection: Selection, values: SlotValues): Promise<string> {
    this.authorise(actor, selection, values)
    return this.#store.read(selection, values)
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
    const outcome = await this.#store.change(actor, changes)
    if ('refused' in outcome) throw changeError(outcome)
    this.#bus.tell()
    return outcome
  }

  #authoriseChange(actor: Actor, change: RequestedChange): void {
    // The author of a post to delete is known only when the store reads the post.
    if (change.kind === 'delete post') this.#access.reach(actor, 'delete a post')
    else this.#access.require(actor, operationOf[change.kind])
    if (!('show' in change) || this.#access.allows(actor, "read others' e-mails")) return
    const mine = isOwn[change.kind] ? "its author's" : undefined
    if (change.show.selection.fields.some(field => field.kind === 'one' && showsPrivate(field, mine)))
      throw notPermitted(actor)
  }

  #checked(actor: Actor, change: RequestedChange): Change {
    switch (change.kind) {
      case 'create post': {
        const title = nonBlankText('title', change.title, postBounds.title)
        return { ...change, title, content: longText('content', change.content, postBounds.content) }
      }
      case 'add comment':
        return { ...change, text: longText('text', change.text, postBounds.comment) }
      case 'like post':
        return change
      case 'delete post':
        return { ...change, reach: this.#access.reach(actor, 'delete a post') }
    }
  }
}

/**
 * Limits control characters in long texts. Responses are JSON, where most control characters take six bytes. The limit
 * on the size of responses uses the stored length of texts, so a long text must not consist mainly of such characters.
 */
function longText(name: string, value: unknown, longest: number): string {
  const result = nonBlankText(name, value, longest)
  if (result.length <= anyCharacters) return result
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones
  const others = result.replaceAll(/[\u0001-\u0007\u000b\u000e-\u001f]/g, '').length
  if (others < result.length * 0.9) throw badInput(`${name} must have fewer control characters`)
  return result
}

/** A thousand texts of this length fit into a response, whatever characters they consist of. */
const anyCharacters = 1_000

function checkStoredBytes(asked: readonly RequestedChange[]): void {
  let bytes = 0
  for (const change of asked) {
    // A character takes at least one byte, so after the limit is exceeded `length` is enough, and cheaper.
    for (const text of textsOf(change)) bytes += bytes > mostStoredBytes ? text.length : Buffer.byteLength(text)
  }
  if (bytes > mostStoredBytes) throw badInput(`An operation stores at most ${mostStoredBytes} bytes of text`)
}

function textsOf(change: RequestedChange): readonly string[] {
  if (change.kind === 'create post') return [change.title, change.content]
  return change.kind === 'add comment' ? [change.text] : []
}

type WithoutReach<C> = C extends unknown ? Omit<C, 'reach'> : never

/** A change as the caller requests it. `Posts` adds the reach of the actor. */
export type RequestedChange = WithoutReach<Change>

/** In these changes the caller is the author, so the private fields of the author may be read. */
const isOwn: Readonly<Partial<Record<RequestedChange['kind'], true>>> = { 'create post': true, 'add comment': true }

const operationOf = {
  'create post': 'create a post',
  'add comment': 'add a comment',
  'like post': 'like a post',
} as const

function changeError({ refused, at }: ChangeRefusal): AppError {
  if (refused === 'token revoked') return invalidToken()
  if (refused === 'not permitted') return new AppError('forbidden', 'Not permitted', { at })
  return new AppError('not-found', 'Post not found', { at })
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
