import { contents, latestPost, type Size } from './data.ts'

/** Ids of rows in the database. */
export interface Places {
  readonly author: number
  readonly longAuthor: number
  readonly escapedAuthor: number
  /** The post with the many comments. */
  readonly latest: number
  readonly long: number
  readonly escaped: number
}

export function placesIn(size: Size): Places {
  const { author, longAuthor, escapedAuthor, longPosts } = contents
  return { author, longAuthor, escapedAuthor, latest: latestPost(size), long: 1, escaped: longPosts + 1 }
}

export function escapedIds({ escaped }: Places, at: number): number {
  return escaped + (at % contents.longPosts)
}

type Named = readonly [name: string, selection: string]

/** What can be selected of one post for a cost of less than 990: for queries, for mutations and for subscriptions. */
export function selectionsOfPosts(): readonly Named[] {
  const all: Named[] = [
    ['wide', many(980, at => `a${at}: content`)],
    ['wide, short', many(980, at => `a${at}: id`)],
    ['wide, long names', many(440, at => `${'a'.repeat(120)}${at}: id`)],
    ['comments', 'comments(limit: 980) { text }'],
    ['comments, twice a field', 'comments(limit: 490) { id text }'],
    ['comments and their authors', 'comments(limit: 160) { author { name } }'],
    ['comments that are skipped', 'comments(limit: 1, offset: 99000) { text }'],
    ["the author's posts", 'author { posts(limit: 980) { content } }'],
    ["the author's posts, skipped", 'author { posts(limit: 900, offset: 99000) { content } }'],
    ['lists', many(190, at => `a${at}: comments(limit: 5) { text }`)],
    ['lists that skip', many(190, at => `a${at}: comments(limit: 5, offset: ${Math.floor(100_000 / 190)}) { text }`)],
    ['authors', many(160, at => `a${at}: author { name }`)],
    ['lists of authors', many(90, at => `a${at}: author { posts(limit: 5) { content } }`)],
  ]
  for (const outer of [5, 10, 20, 50, 100]) {
    const inner = Math.floor(980 / outer) - 5
    all.push([
      `${outer} comments x ${inner} posts`,
      `comments(limit: ${outer}) { author { posts(limit: ${inner}) { content } } }`,
    ])
    const skip = Math.floor(99_000 / outer)
    all.push([
      `${outer} comments x posts that skip ${skip}`,
      `comments(limit: ${outer}) { author { posts(limit: 1, offset: ${skip}) { content } } }`,
    ])
    const each = Math.floor(970 / outer)
    all.push([
      `${outer} posts x ${each} comments`,
      `author { posts(limit: ${outer}) { comments(limit: ${each}) { text } } }`,
    ])
  }
  return all
}

/** The same of one comment. */
export function selectionsOfComments(): readonly Named[] {
  const all: Named[] = [
    ['wide', many(980, at => `a${at}: text`)],
    ["the author's posts", 'author { posts(limit: 980) { content } }'],
    ["the author's posts, skipped", 'author { posts(limit: 900, offset: 99000) { content } }'],
    ['lists of authors', many(90, at => `a${at}: author { posts(limit: 5) { content } }`)],
  ]
  for (const outer of [5, 31, 100]) {
    const each = Math.floor(970 / outer)
    all.push([
      `${outer} posts x ${each} comments`,
      `author { posts(limit: ${outer}) { comments(limit: ${each}) { text } } }`,
    ])
    const skip = Math.floor(99_000 / outer)
    all.push([
      `${outer} posts x comments that skip ${skip}`,
      `author { posts(limit: ${outer}) { comments(limit: 1, offset: ${skip}) { text } } }`,
    ])
  }
  return all
}

function many(times: number, part: (index: number) => string): string {
  return Array.from({ length: times }, (_, at) => part(at)).join(' ')
}
