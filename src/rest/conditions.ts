import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Condition, Revised, Revisions } from '../core/condition.ts'
import { badInput } from '../core/input.ts'
import { headerOf } from './routes.ts'

/**
 * Answers with a resource and its `ETag`, or with 304 if the client has it already (RFC 9110, section 13). `mark` is
 * part of the tag: it tells apart representations of one revision.
 */
export function sendRevised<Item>(
  request: FastifyRequest,
  reply: FastifyReply,
  { item, revision }: Revised<Item>,
  represent: (item: Item) => object,
  mark = '',
): object | undefined {
  // A cache must ask each time, because the caller's access may have ended.
  const tag = `"${revision}${mark}"`
  reply.header('etag', tag).header('cache-control', 'private, no-cache')
  const sent = headerOf(request, 'if-none-match')
  if (sent === undefined || !(sent === tag || isAmong(revision + mark, tagsIn(sent)))) return represent(item)
  reply.code(304)
  // Fastify sends none of it, but its length: without it, the length would be 0, which caches could believe.
  if (request.method === 'HEAD') return represent(item)
  reply.send()
  return undefined // Fastify would wait for the end of a reply that a handler returns
}

function isAmong(tag: string, known: ReturnType<typeof tagsIn>): boolean {
  return known === 'any' || known?.some(each => each.tag === tag) === true
}

/** The condition in `If-Match` and `If-None-Match` of a write. */
export function decodeCondition(request: FastifyRequest, mark = ''): Condition {
  const match = revisionsIn(request, 'If-Match', mark)
  const noneMatch = revisionsIn(request, 'If-None-Match', mark)
  return { ...(match !== undefined && { match }), ...(noneMatch !== undefined && { noneMatch }) }
}

function revisionsIn(request: FastifyRequest, name: 'If-Match' | 'If-None-Match', mark: string): Revisions | undefined {
  const header = headerOf(request, name.toLowerCase())
  if (header === undefined) return undefined
  const tags = tagsIn(header)
  // Not ignored: a client that sends it relies on it.
  if (tags === undefined) throw badInput(`${name} must be * or a list of entity tags in quotes`)
  if (tags === 'any') return tags
  // `If-Match` compares strongly: a weak tag equals no other one.
  const compared = tags.filter(({ tag, weak }) => tag.endsWith(mark) && !(weak && name === 'If-Match'))
  return compared.map(({ tag }) => tag.slice(0, tag.length - mark.length))
}

interface Tag {
  readonly tag: string
  readonly weak: boolean
}

/** The entity tags in a header, or `undefined` if it is malformed. Elements of the list may be empty. */
function tagsIn(header: string): 'any' | readonly Tag[] | undefined {
  if (header === '*') return 'any'
  const tags: Tag[] = []
  for (element.lastIndex = 0; element.lastIndex < header.length; ) {
    const found = element.exec(header)
    if (found === null) return undefined
    const [, weak, tag] = found
    if (tag !== undefined) tags.push({ tag, weak: weak !== undefined })
  }
  return tags.length === 0 ? undefined : tags
}

// A comma may be part of a tag. No two parts of this expression can take the same blanks, so it cannot become slow.
const element = /[ \t]*(?:(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*)?(?:,|$)/y
