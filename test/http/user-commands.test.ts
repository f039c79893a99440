import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeJwt } from 'jose'
import { execute } from '../faults/execute.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { inForm, onlyInFull } from '../support/form.ts'
import { postJson } from '../support/http.ts'
import { tokenOf, tryLogin } from '../support/logins.ts'
import { refusalOf, runDuet } from '../support/process.ts'

for (const kind of engineKinds) {
  describe(`users on the command line, on ${kind.name}`, {
    skip: kind.skip || (kind.kind === 'postgres' && onlyInFull),
  }, () => {
    async function start() {
      const app = await startTestAppOn(kind)
      const { location } = app.database
      const env = { DATABASE_URL: kind.kind === 'sqlite' ? `sqlite:${location}` : location }
      const users = (args: readonly string[], input?: string) =>
        runDuet(['users', ...args], { env, ...(input !== undefined && { input }) })
      return Object.assign(app, { users })
    }

    test('create makes the first admin while a server runs, with a password that is printed once, or one from stdin, which is not printed', async () => {
      await using app = await start()
      const { code, stdout, stderr } = await app.users(['create', '--email', 'Root@example.com', '--role', 'admin'])
      assert.deepEqual([code, stderr], [0, ''])
      const [, id = '', generated = ''] =
        /^User (\d+) is created, with the role admin\.\nPassword: (\S{20})\n$/.exec(stdout) ?? assert.fail(stdout)
      const { sub, role } = decodeJwt(await tokenOf(app.url, 'root@example.com', generated))
      assert.deepEqual([sub, role], [id, 'admin'])
      const secret = 'from a file, with blanks'
      const args = ['create', '--email', 'ann@example.com', '--name', 'Ann', '--password-stdin']
      const created = await app.users(args, `${secret}\n`)
      assert.equal(created.code, 0)
      assert.match(created.stdout, /^User \d+ is created, with the role member\.\n$/)
      assert.equal(decodeJwt(await tokenOf(app.url, 'ann@example.com', secret)).role, 'member')
      assert.match(refusalOf(await app.users(args, `${secret}\n`)), /another user logs in with this e-mail/)
    })

    test('list shows every user with role, or those with one role, and no control or format character of a name or e-mail', async () => {
      await using app = await start()
      await postJson(`${app.url}/users`, JSON.stringify({ name: 'Bob', email: 'bob@example.com' }))
      await execute(app.database, "update users set name = 'Bob\u001b[2J\n\u009b1m'") // as older versions allowed
      await app.users(['create', '--email', 'root@example.com', '--role', 'admin'])
      const hidden = { name: 'a\u202enimda\u200b\u2028\u2029\u{e0041}', email: 'ro\u200bot\u2066@example.com' }
      await postJson(`${app.url}/users`, JSON.stringify(hidden))
      const bob = '1\tmember\tno\tbob@example.com\tBob\ufffd[2J\ufffd\ufffd1m\n'
      const root = '2\tadmin\tyes\troot@example.com\troot\n'
      const shown = '3\tmember\tno\tro\ufffdot\ufffd@example.com\ta\ufffdnimda\ufffd\ufffd\ufffd\ufffd\n'
      const head = 'id\trole\tlogin\temail\tname\n'
      assert.equal((await app.users(['list'])).stdout, head + bob + root + shown)
      // Others are found wherever they are among thousands.
      await execute(
        app.database,
        `insert into users (id, name, email, email_key, token_mark, role, created_at)
         with recursive n(i) as (select 4 union all select i + 1 from n where i < 2500)
         select i, 'U', 'u' || i || '@example.com', 'u' || i || '@example.com', 'mark ' || i,
                case when i in (4, 1000, 1001, 2500) then 'admin' else 'member' end, '2026-01-01T00:00:00.000Z' from n`,
      )
      const { stdout } = await app.users(['list', '--role', 'admin'])
      assert.deepEqual(stdout.match(/^\d+/gm), ['2', '4', '1000', '1001', '2500'])
    })
  })
}

test('a user that cannot be created, or get a role, is refused with one line, and a password is never an argument', async () => {
  await using app = await startTestAppOn(engineKinds[0] ?? assert.fail())
  const env = { DATABASE_URL: `sqlite:${app.database.location}` }
  const ann = ['create', '--email', 'ann@example.com']
  const more: readonly (readonly [readonly string[], RegExp])[] = [
    [['create'], /usage: users create --email/],
    [[...ann, '--name', 'Ann\u001b[2J'], /name must not contain control characters/],
    [['set-role', 'nobody@example.com', 'admin'], /no user can log in with this e-mail/],
    [['set-role', '1', 'root'], /the role must be member or admin/],
  ]
  for (const [args, reason, input = ''] of [
    [[...ann, '--password', 'correct horse'], /usage: users create --email <email> \[--name <name>\]/],
    [['create', '--email', 'ann'], /email must be an e-mail address/],
    [[...ann, '--role', 'root'], /the role must be member or admin/],
    [[...ann, '--password-stdin'], /password must be at least 8 characters/, 'short\n'],
    [['set-role', '4711', 'admin'], /there is no user with this id/],
    ...inForm([], more),
  ] as const) {
    assert.match(refusalOf(await runDuet(['users', ...args], { env, input })), reason)
  }
  assert.equal((await tryLogin(app.url)).status, 401)
})
