import {
  loginKeyOf,
  nameKeyOf,
  type UserList,
  type UserListRequest,
  userBounds,
  usersTogether,
} from '../../core/users/user.ts'
import type { Engine } from '../engine.ts'
import type { Statement } from '../sql.ts'
import type { Verbs } from '../verb.ts'
import { listedColumns, UserPage, userColumns } from './user-lists.ts'

/**
 * The users whose name or e-mail begins with a text, by id. The indexes have the keys in the order of the texts. If few
 * users are found there, their ids are sorted. If many are, users are looked at in the order of their ids instead, until
 * the page is full. That is soon, unless all who are found have neighbouring ids. So only some are looked at in one
 * statement. The users are then read by their ids, some at a time, and others are served between two statements.
 */
export function searchOfUsers(engine: Pick<Engine<Verbs>, 'read' | 'dialect'>) {
  const upwards = textsFor(engine.dialect.name, 'asc')
  const downwards = textsFor(engine.dialect.name, 'desc')
  return async (text: string, { limit, after, sort }: UserListRequest): Promise<UserList> => {
    const texts = sort === '-id' ? downwards : upwards
    const keys = [nameKeyOf(text), loginKeyOf(text)].flatMap(key => [key, key + lastCharacters])
    const page = new UserPage(engine.dialect.name)
    const read = (statement: Statement) => page.pace.rest().then(() => engine.read(statement))
    const [counts = []] = await read({ text: counted, values: keys })
    const areFew = counts.every(count => Number(count) <= someUsers)
    for (let start = after ?? texts.start; ; ) {
      const [[users, end] = []] = areFew ? [[0, texts.end]] : await read({ text: texts.next, values: [start] })
      const wanted = limit - page.count
      const values = [...keys, wanted + 1, start, Number(end)]
      const ids = (await read({ text: areFew ? texts.few : texts.some, values })).map(([id]) => Number(id))
      const more = ids.splice(wanted).length > 0
      for (let at = 0; at < ids.length; at += usersTogether) {
        const list = texts.list(ids.slice(at, at + usersTogether))
        page.add(await read({ text: texts.users, values: [...keys, list], own: true }), usersTogether)
      }
      if (more ? page.count === limit : Number(users) < someUsers) return { parts: page.parts, last: page.last, more }
      // A user may have been deleted or renamed since its id was found. Then another one takes its place.
      start = more ? (ids.at(-1) ?? start) : Number(end)
    }
  }
}

/** Texts with a beginning are sorted between it and this text after it: none of them is longer. */
const lastCharacters = '\u{10ffff}'.repeat(Math.max(userBounds.name, userBounds.email))

/** Found users that are sorted, or users that are looked at, in one statement: a few milliseconds of work. */
const someUsers = 2_000

const [names, emails] = ['name_key between $1 and $2', 'email_key between $3 and $4']
const upToMany = (keys: string) => `select 1 from users where ${keys} limit ${someUsers + 1}`
const counted = `select (select count(*) from (${upToMany(names)}) as names), (select count(*) from (${upToMany(emails)}) as emails)`

/** No user has an id as large as this. */
const mostId = Number.MAX_SAFE_INTEGER + 1

function textsFor(engine: keyof typeof listedColumns, order: 'asc' | 'desc') {
  const [beyond, until, furthest] = order === 'asc' ? ['>', '<=', 'max'] : ['<', '>=', 'min']
  const [start, end] = order === 'asc' ? [0, mostId] : [mostId, 0]
  const ordered = `order by id ${order} limit $5`
  const found = `select id from users where ${names} union select id from users where ${emails}`
  const walked = `select id from users where id ${beyond} $1 order by id ${order} limit ${someUsers}`
  const isListed = engine === 'sqlite' ? 'in (select value from json_each($5))' : '= any($5::bigint[])'
  return {
    start,
    end,
    // With `+` no engine takes the index of the ids, in which it would look at all users.
    few: `select id from (${found}) as found where +id ${beyond} $6 and +id ${until} $7 ${ordered}`,
    next: `select count(*), ${furthest}(id) from (${walked}) as walked`,
    some: `select id from users where (${names} or ${emails}) and id ${beyond} $6 and id ${until} $7 ${ordered}`,
    users: `select ${listedColumns[engine]} from (select ${userColumns} from users where id ${isListed} and (${names} or ${emails}) order by id ${order}) as listed order by id ${order}`,
    list: (ids: readonly number[]) => (engine === 'sqlite' ? `[${ids}]` : `{${ids}}`),
  }
}
