import { DatabaseSync } from 'node:sqlite'

/**
 * What the services of this folder read and write, over the tables of Duet: prepared statements, one connection, durable
 * commits. Lists have `limit +?`, because SQLite plans a statement anew whenever a value is bound to a bare `limit ?`.
 */
export function openDatabase(path) {
  const database = new DatabaseSync(path)
  database.exec(
    'pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on; pragma cache_size = -65536',
  )
  const user = database.prepare('select id, name, email, age, avatar from users where id = ?')
  const users = database.prepare('select id, name, email, age, avatar from users where id > ? order by id limit +?')
  const addUser = database.prepare(
    `insert into users (name, email, email_key, token_mark, created_at) values (?, ?, lower(?), 'mark', ?)
     returning id, name, email`,
  )
  const findKey = database.prepare(
    `select p.id, p.amount_cents, o.id as order_id, p.created_at from idempotency_keys k
     join payments p on p.id = k.payment_id left join orders o on o.payment_id = p.id
     where coalesce(k.caller_id, 0) = 0 and k.scope = '/payments' and k.key = ?`,
  )
  const addPayment = database.prepare('insert into payments (amount_cents, created_at) values (?, ?) returning id')
  const addKey = database.prepare(
    "insert into idempotency_keys (scope, key, payment_id, expires_at) values ('/payments', ?, ?, ?)",
  )
  const post = database.prepare(`select ${postColumns} from posts where id = ?`)
  const newest = database.prepare(`select ${postColumns} from posts order by id desc limit +? offset +?`)
  const older = database.prepare(`select ${postColumns} from posts where id < ? order by id desc limit +?`)
  const ofAuthors = database.prepare(
    `select p.id, p.author_id, p.title, p.content, p.likes, p.published_at from json_each(?) a join posts p on p.id in
       (select id from posts where author_id = a.value order by id desc limit +?) order by a.key, p.id desc`,
  )
  const ofPosts = database.prepare(
    `select c.id, c.text, c.author_id, c.post_id from json_each(?) p join comments c on c.id in
       (select id from comments where post_id = p.value order by id limit +?) order by p.key, c.id`,
  )
  const usersByIds = database.prepare(
    'select id, name, email, avatar, created_at from users where id in (select value from json_each(?))',
  )
  const postsByIds = database.prepare(`select ${postColumns} from posts where id in (select value from json_each(?))`)
  const like = database.prepare(`update posts set likes = likes + 1 where id = ? returning ${postColumns}`)
  const addPost = database.prepare(
    `insert into posts (author_id, title, content, published_at) values (1, ?, ?, ?) returning ${postColumns}`,
  )
  const addComment = database.prepare(
    'insert into comments (author_id, post_id, text, created_at) values (1, ?, ?, ?) returning id, text, author_id, post_id',
  )
  const countComment = database.prepare('update posts set comment_count = comment_count + 1 where id = ?')

  return {
    user: id => shown(user.get(id)),
    users: (after, limit) => users.all(after, limit).map(shown),
    createUser: (name, email) => addUser.get(name, email, email, now()),
    /** Pays once per key: look the key up, insert two rows, commit. */
    pay(key, amount) {
      database.exec('begin immediate')
      try {
        const known = findKey.get(key)
        if (known !== undefined) {
          database.exec('rollback')
          const { id, amount_cents, order_id, created_at } = known
          return { isNew: false, payment: { id, amount: amount_cents / 100, order_id, created_at } }
        }
        const created_at = now()
        const { id } = addPayment.get(Math.round(amount * 100), created_at)
        addKey.run(key, id, new Date(Date.now() + 86_400_000).toISOString())
        database.exec('commit')
        return { isNew: true, payment: { id, amount, order_id: null, created_at } }
      } catch (error) {
        database.exec('rollback')
        throw error
      }
    },
    post: id => post.get(id),
    posts: ({ limit, offset, after }) => (after == null ? newest.all(limit, offset) : older.all(after, limit)),
    /** The rows with these ids, in their order. */
    usersByIds: ids => inOrder(ids, usersByIds.all(JSON.stringify(ids))),
    postsByIds: ids => inOrder(ids, postsByIds.all(JSON.stringify(ids))),
    /** The first comments of each of these posts, in one statement. */
    commentsOf: (posts, limit) => grouped(posts, ofPosts.all(JSON.stringify(posts), limit), 'post_id'),
    postsOf: (authors, limit) => grouped(authors, ofAuthors.all(JSON.stringify(authors), limit), 'author_id'),
    like: id => like.get(id),
    createPost: (title, content) => addPost.get(title, content, now()),
    addComment(postId, text) {
      database.exec('begin immediate')
      const comment = addComment.get(postId, text, now())
      countComment.run(postId)
      database.exec('commit')
      return comment
    },
  }
}

const postColumns = 'id, author_id, title, content, likes, published_at'

/** A user as the HTTP interface shows it: without what is not set. */
function shown(user) {
  if (user === undefined) return undefined
  const { id, name, email, age, avatar } = user
  return { id, name, email, ...(age !== null && { age }), ...(avatar !== null && { avatar }) }
}

function inOrder(ids, rows) {
  const found = new Map(rows.map(row => [row.id, row]))
  return ids.map(id => found.get(id))
}

function grouped(keys, rows, column) {
  const groups = new Map(keys.map(key => [key, []]))
  for (const row of rows) groups.get(row[column]).push(row)
  return keys.map(key => groups.get(key))
}

function now() {
  return new Date().toISOString()
}
