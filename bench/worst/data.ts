import type { Kind } from '../databases.ts'

/** The rows of the test database. */
export const contents = {
  /** Has written 100,000 posts of 4 KB. */
  author: 1,
  /** Has posts as long as they may be. */
  longAuthor: 2,
  /** Has posts as long as they may be, of characters that JSON writes as six. */
  escapedAuthor: 3,
  longPosts: 200,
  /** Of the latest of all posts. */
  comments: 100_000,
  /** Of the thousand posts before it, each. */
  fewComments: 10,
  users: 2000,
  orders: 1000,
} as const

export interface Size {
  /** 100,000, or fewer for a first look. */
  readonly posts: number
}

/** The id of the latest post, which has the many comments. */
export function latestPost({ posts }: Size): number {
  return 2 * contents.longPosts + posts
}

/** The statements that fill the database. Texts are of random letters, so that no engine can make them small. */
export function fillStatementsFor(kind: Kind, size: Size): readonly string[] {
  const { author, longAuthor, escapedAuthor, longPosts, comments, fewComments, users, orders } = contents
  const numbers = (most: number) =>
    kind === 'sqlite'
      ? `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${most}) select i from n) as n`
      : `generate_series(1, ${most}) as n(i)`
  const at = "'2026-01-31T12:00:00.000Z'"
  const posts = (most: number, by: number, content: string) =>
    `insert into posts (author_id, title, content, likes, published_at)
     select ${by}, 'Title of post ' || i, ${content}, i % 100, ${at} from ${numbers(most)}`
  const latest = latestPost(size)
  return [
    `insert into users (id, name, email, avatar, token_mark, created_at)
     select i, 'User ' || i, 'user' || i || '@example.com', 'https://example.com/${letters(1000)}' || i, 'mark', ${at}
     from ${numbers(users)}`,
    // The last thousand are as large as they may be.
    `update users set name = '${'漢'.repeat(320)}', email = '${'漢'.repeat(300)}@' || id, avatar = 'https://example.com/${'漢'.repeat(676)}'
     where id > ${users - 1000}`,
    'update users set name_key = lower(name), email_key = lower(email)',
    `update counters set next = ${users + 1}`,
    // Cyrillic: of all scripts it takes longest to write for its bytes.
    posts(longPosts, longAuthor, `'${letters(65_536, 'абвгдежзийклмнопрстуфхцчшщъыьэюя')}'`),
    // The longest in JSON that may be stored: a tenth of control characters, else quotes.
    posts(longPosts, escapedAuthor, `'${'\u0001"""""""""'.repeat(6_553)}'`),
    posts(size.posts, author, `substr('${letters(5096)}', i % 1000 + 1, 4096)`),
    `insert into comments (post_id, author_id, text, created_at)
     select ${latest}, ${author}, 'A remark on this, number ' || i, ${at} from ${numbers(comments)}`,
    `insert into comments (post_id, author_id, text, created_at)
     select ${latest} - 1 - i % 1000, ${author}, 'A remark, number ' || i, ${at} from ${numbers(1000 * fewComments)}`,
    `insert into orders (user_id, amount_cents, created_at) select ${author}, 1000, ${at} from ${numbers(orders)}`,
    kind === 'sqlite' ? 'analyze' : 'vacuum analyze',
  ]
}

const latin = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 '

function letters(count: number, alphabet = latin): string {
  let seed = 1
  return Array.from({ length: count }, () => {
    seed = (seed * 48_271) % 0x7fffffff
    return alphabet[seed % alphabet.length]
  }).join('')
}
