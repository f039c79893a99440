import { invalidToken } from '../access.ts'
import { AppError } from '../errors.ts'
import { badInput, nonBlankText } from '../input.ts'
import type { Change, ChangeRefusal } from '../store.ts'

type WithoutReach<C> = C extends unknown ? Omit<C, 'reach'> : never

/** A change as the caller requests it. `Posts` adds the reach of the actor. */
export type RequestedChange = WithoutReach<Change>

/** The maximum lengths of the texts of posts and comments, in characters. */
const postBounds = Object.freeze({ title: 300, content: 65_536, text: 65_536 })

/**
 * The maximum text that one operation may store, in bytes. The limit on the request body is not enough, because an
 * operation can use one variable many times.
 */
const mostStoredBytes = 1024 * 1024

function textsOf(change: RequestedChange): readonly (readonly [TextName, string])[] {
  const texts = change as Partial<Record<TextName, string | null>>
  return textNames.flatMap(name => (typeof texts[name] === 'string' ? [[name, texts[name]] as const] : []))
}

type TextName = keyof typeof postBounds
const textNames = Object.keys(postBounds) as TextName[]

/**
 * Limits control characters in long texts. Responses are JSON, where most control characters take six bytes. The limit
 * on the size of responses uses the stored length of texts, so a long text must not consist mainly of such characters.
 */
export function checkTexts(change: RequestedChange): void {
  const texts = textsOf(change)
  for (const [name, value] of texts) {
    const { length } = nonBlankText(name, value, postBounds[name])
    if (length <= anyCharacters) continue
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones
    const others = value.replaceAll(/[\u0001-\u0007\u000b\u000e-\u001f]/g, '').length
    if (others < length * 0.9) throw badInput(`${name} must have fewer control characters`)
  }
  if (change.kind === 'update a post' && texts.length === 0) throw badInput('title or content must be given')
}

/** A thousand texts of this length fit into a response, whatever characters they consist of. */
const anyCharacters = 1_000

export function checkStoredBytes(asked: readonly RequestedChange[]): void {
  let bytes = 0
  for (const [, value] of asked.flatMap(textsOf)) {
    // A character takes at least one byte, so after the limit is exceeded `length` is enough, and cheaper.
    bytes += bytes > mostStoredBytes ? value.length : Buffer.byteLength(value)
  }
  if (bytes > mostStoredBytes) throw badInput(`An operation stores at most ${mostStoredBytes} bytes of text`)
}

export function changeError({ refused, at }: ChangeRefusal): AppError {
  if (refused === 'token revoked') return invalidToken()
  if (refused === 'not permitted') return new AppError('forbidden', 'Not permitted', { at })
  const subject = refused.startsWith('post') ? 'post' : 'comment'
  if (refused.endsWith('changed')) return new AppError('conflict', `The ${subject} has changed`, { at })
  return new AppError('not-found', subject === 'post' ? 'Post not found' : 'Comment not found', { at })
}
