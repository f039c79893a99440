import { invalidToken, type Operation, type Reach } from '../access.ts'
import { AppError } from '../errors.ts'
import { badInput, nonBlankText } from '../input.ts'
import type { Change, ChangeRefusal } from '../store.ts'
import { mostStoredBytes, postBounds } from './post.ts'

type WithoutReach<C> = C extends unknown ? Omit<C, 'reach'> : never
type OfOwner = Extract<Change, { readonly reach: Reach }>

/** A change as the caller requests it. `Posts` adds the reach of the actor. */
export type RequestedChange = WithoutReach<Change>

export const operationOf: Readonly<Record<RequestedChange['kind'], Operation>> = {
  'create post': 'create a post',
  'update post': 'update a post',
  'delete post': 'delete a post',
  'like post': 'like a post',
  'add comment': 'add a comment',
  'update comment': 'update a comment',
  'delete comment': 'delete a comment',
}

/** These need the owner or an admin. The store checks it, because the owner is known only when it reads the row. */
const forOwner: Readonly<Record<OfOwner['kind'], true>> = {
  'update post': true,
  'delete post': true,
  'update comment': true,
  'delete comment': true,
}

export function isForOwner(change: RequestedChange): change is WithoutReach<OfOwner> {
  return change.kind in forOwner
}

/** In these changes the caller is the author, so the private fields of the author may be read. */
export const isByCaller: Readonly<Partial<Record<RequestedChange['kind'], true>>> = {
  'create post': true,
  'add comment': true,
}

/** A text that a change stores. */
interface StoredText {
  readonly name: string
  readonly value: string
  readonly longest: number
}

/** All texts that a change stores. They are checked, and they count toward the limit on stored text. */
function textsOf(change: RequestedChange): readonly StoredText[] {
  switch (change.kind) {
    case 'create post':
      return [titleOf(change.title), contentOf(change.content)]
    case 'update post': {
      const { title, content } = change
      return [...(title === null ? [] : [titleOf(title)]), ...(content === null ? [] : [contentOf(content)])]
    }
    case 'add comment':
    case 'update comment':
      return [{ name: 'text', value: change.text, longest: postBounds.comment }]
    case 'like post':
    case 'delete post':
    case 'delete comment':
      return []
  }
}

function titleOf(value: string): StoredText {
  return { name: 'title', value, longest: postBounds.title }
}

function contentOf(value: string): StoredText {
  return { name: 'content', value, longest: postBounds.content }
}

export function checkTexts(change: RequestedChange): void {
  const texts = textsOf(change)
  for (const { name, value, longest } of texts) checkText(name, value, longest)
  if (change.kind === 'update post' && texts.length === 0) throw badInput('title or content must be given')
}

/**
 * Limits control characters in long texts. Responses are JSON, where most control characters take six bytes. The limit
 * on the size of responses uses the stored length of texts, so a long text must not consist mainly of such characters.
 */
function checkText(name: string, value: string, longest: number): void {
  const text = nonBlankText(name, value, longest)
  if (text.length <= anyCharacters) return
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones
  const others = text.replaceAll(/[\u0001-\u0007\u000b\u000e-\u001f]/g, '').length
  if (others < text.length * 0.9) throw badInput(`${name} must have fewer control characters`)
}

/** A thousand texts of this length fit into a response, whatever characters they consist of. */
const anyCharacters = 1_000

export function checkStoredBytes(asked: readonly RequestedChange[]): void {
  let bytes = 0
  for (const { value } of asked.flatMap(textsOf)) {
    // A character takes at least one byte, so after the limit is exceeded `length` is enough, and cheaper.
    bytes += bytes > mostStoredBytes ? value.length : Buffer.byteLength(value)
  }
  if (bytes > mostStoredBytes) throw badInput(`An operation stores at most ${mostStoredBytes} bytes of text`)
}

export function changeError({ refused, at }: ChangeRefusal): AppError {
  switch (refused) {
    case 'token revoked':
      return invalidToken()
    case 'not permitted':
      return new AppError('forbidden', 'Not permitted', { at })
    case 'post absent':
      return new AppError('not-found', 'Post not found', { at })
    case 'comment absent':
      return new AppError('not-found', 'Comment not found', { at })
  }
}
