import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Condition, Revised, Revisions } from '../core/condition.ts'
import { badInput } from '../core/input.ts'

/**
 * Answers with a resource and its `ETag`, or with 304 if the client has it already (RFC 9110, section 13). `mark` is the
 * end of the tag. It distinguishes representations of one revision that differ in their links.
 */
export function sendRevised<Item>(
  request: FastifyRequest,
  reply: FastifyReply,
  { item, revision }: Revised<Item>,
  represent: (item: Item) => object,
  mark = '',
): object | undefined {
  const tag = `"${revision}${mark}"`
  // With `no-cache` a cache must ask each time, because the caller's access may have ended.
  reply.header('etag', tag).header('cache-control', 'private, no-cache')
  const sent = request.headers['if-none-match'] ?? ''
  const known = sent === tag ? 'any' : tagsIn(sent) // most conditions are exactly this tag
  const isKnown = known === 'any' || known?.some(each => each.tag === revision + mark) === true
  if (!isKnown) return represent(item)
  reply.code(304)
  // For HEAD, Fastify sends only the length of the body. Without a body it would be 0, which caches could store.
  if (request.method === 'HEAD') return represent(item)
  reply.send()
  return undefined // if a handler returns the reply, Fastify waits for its end
}

/** The condition in `If-Match` and `If-None-Match` of a write. */
export function decodeCondition({ headers }: FastifyRequest, mark = ''): Condition {
  const match = revisionsIn('If-Match', headers['if-match'], mark)
  const noneMatch = revisionsIn('If-None-Match', headers['if-none-match'], mark)
  return { ...(match !== undefined && { match }), ...(noneMatch !== undefined && { noneMatch }) }
}

function revisionsIn(name: string, header: string | undefined, mark: string): Revisions | undefined {
  if (header === undefined) return undefined
  const tags = tagsIn(header)
  // A malformed condition is not ignored, because the client relies on it.
  if (tags === undefined) throw badInput(`${name} must be * or a list of entity tags in quotes`)
  if (tags === 'any') return tags
  // `If-Match` uses strong comparison, in which a weak tag never matches.
  const compared = tags.filter(({ tag, weak }) => tag.endsWith(mark) && !(weak && name === 'If-Match'))
  return compared.map(({ tag }) => tag.slice(0, tag.length - mark.length))
}

/** The entity tags in a header, or `undefined` if it is malformed. Elements of the list may be empty. */
function tagsIn(header: string) {
  if (header === '*') return 'any'
  const tags: { readonly tag: string; readonly weak: boolean }[] = []
  for (element.lastIndex = 0; element.lastIndex < header.length; ) {
    const found = element.exec(header)
    if (found === null) return undefined
    const [, weak, tag] = found
    if (tag !== undefined) tags.push({ tag, weak: weak !== undefined })
  }
  return tags.length === 0 ? undefined : tags
}

// A comma may be part of a tag. No two parts of this expression match the same blanks, so there is no backtracking.
const element = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/y
