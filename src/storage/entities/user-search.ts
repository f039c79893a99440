import { loginKeyOf, nameKeyOf, type UserListRequest, userBounds } from '../../core/users/user.ts'
import type { Engine } from '../engine.ts'
import type { Row } from '../sql.ts'
import type { Verbs } from '../verb.ts'
import { listedColumns, userColumns } from './user-lists.ts'

/**
 * The users whose name or e-mail begins with a text, by id. The indexes have the keys in the order of the texts. If few
 * users are found there, these are sorted by id. If many are, users are looked at in the order of their ids instead,
 * until the page is full. That is soon, unless all who are found have neighbouring ids. So only some are looked at in
 * one statement, and others are served between two of them.
 */
export function searchOfUsers(engine: Pick<Engine<Verbs>, 'read' | 'dialect'>) {
  const upwards = textsFor(engine.dialect.name, 'asc')
  const downwards = textsFor(engine.dialect.name, 'desc')
  return async (text: string, { limit, after, sort }: UserListRequest): Promise<readonly Row[]> => {
    const texts = sort === '-id' ? downwards : upwards
    const keys = [nameKeyOf(text), loginKeyOf(text)].flatMap(key => [key, key + lastCharacters])
    let start = after ?? texts.start
    const [counts = []] = await engine.read({ text: counted, values: keys })
    if (counts.every(count => Number(count) <= fewUsers))
      return engine.read({ text: texts.few, values: [...keys, limit, start] })
    const found: Row[] = []
    for (;;) {
      const [[users, end] = []] = await engine.read({ text: texts.end, values: [start] })
      if (users === 0) return found
      const values = [...keys, limit - found.length, start, Number(end)]
      found.push(...(await engine.read({ text: texts.some, values })))
      if (found.length === limit || Number(users) < usersTogether) return found
      start = Number(end)
    }
  }
}

/** Texts with a beginning are sorted between it and this text after it: none of them is longer. */
const lastCharacters = '\u{10ffff}'.repeat(Math.max(userBounds.name, userBounds.email))

/** Found users that are sorted, and users that are looked at in one statement: a few milliseconds of work. */
const fewUsers = 10_000
const usersTogether = 10_000

const [names, emails] = ['name_key between $1 and $2', 'email_key between $3 and $4']
const upToMany = (keys: string) => `select 1 from users where ${keys} limit ${fewUsers + 1}`
const counted = `select (select count(*) from (${upToMany(names)}) as names), (select count(*) from (${upToMany(emails)}) as emails)`

function textsFor(engine: keyof typeof listedColumns, order: 'asc' | 'desc') {
  const [beyond, until, end] = order === 'asc' ? ['>', '<=', 'max'] : ['<', '>=', 'min']
  const page = `order by id ${order} limit $5`
  const users = `select ${userColumns.join(', ')} from users where`
  const found = `select id from users where ${names} union select id from users where ${emails}`
  const select = (rows: string) => `select ${listedColumns[engine]} from (${rows}) as listed order by id ${order}`
  const few = {
    sqlite: `${users} id in (${found}) and id ${beyond} $6 ${page}`,
    // PostgreSQL does not know that a page is small, and would read all users to find those of the page among them.
    postgres: `select listed.* from (select id from (${found}) as found where id ${beyond} $6 ${page}) as page
               cross join lateral (${users} users.id = page.id offset 0) as listed`,
  }
  const walked = `select id from users where id ${beyond} $1 order by id ${order} limit ${usersTogether}`
  return {
    start: order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER + 1,
    few: select(few[engine]),
    end: `select count(*), ${end}(id) from (${walked}) as walked`,
    some: select(`${users} id ${beyond} $6 and id ${until} $7 and (${names} or ${emails}) ${page}`),
  }
}
