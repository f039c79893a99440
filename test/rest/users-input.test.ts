import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { UserInput } from '../../src/core/users/user.ts'
import { sql } from '../../src/storage/sql.ts'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { assertRefusal } from '../support/refusal.ts'
import { bodyOf, createUser, send, sendText, somebody, unstorable } from '../support/rest.ts'
import { shared } from '../support/shared.ts'

const required = 'Name and email required'
/** One visible character that has length two in JavaScript. */
const balloon = '🎈'
const nothing = { missing: undefined, null: null, empty: '', blank: ' \t\n\u3000', number: 1, list: ['a'], object: {} }
/** The first and last ones of each range, and those that terminals and logs obey. */
const controls = ['\u0001', '\t', '\n', '\r', '\u001b', '\u001f', '\u007f', '\u0080', '\u0085', '\u009f']

/** Values that a field must not have, in any request. */
const badFields: Readonly<Record<keyof UserInput, readonly unknown[]>> = {
  name: ['x'.repeat(321), `${balloon.repeat(160)}x`, ...unstorable, ...controls.map(control => `a${control}b`)],
  email: [
    ...['ada', 'a da@example.com', ' ada@example.com', 'ada@example.com ', 'ada@example.com\n'],
    ...['ada\t@a', 'ada\u007f@a', 'ada\u0085@a', 'ada\u00a0@a', `${'x'.repeat(309)}@example.com`],
    ...unstorable.map(text => `${text}@example.com`),
  ],
  age: [-1, 1.5, '30', 151, true, [30], {}, '', -0.5, 1e21],
  avatar: [
    ...['', 'x', '//example.com/a.png', 'javascript:alert(1)', 'https://', ' https://example.com'],
    ...[1, true, ['https://example.com']],
    ...['x'.repeat(2029), `${'漢'.repeat(676)}x`, '"'.repeat(1015)].map(path => `https://example.com/${path}`),
    ...[...unstorable, ...controls].map(text => `https://example.com/${text}b`),
  ],
  password: ['', '1234567', 'x'.repeat(129), 12345678, true, ['12345678'], ...unstorable.map(text => text.repeat(8))],
}

/** Extreme valid values of a field. They are stored unchanged. */
const goodFields: Readonly<Record<Exclude<keyof UserInput, 'password'>, readonly unknown[]>> = {
  name: [
    ...['x', 'x'.repeat(320), balloon.repeat(160), ' Ada ', "Robert'); drop table users;--"],
    ...['\u200b', 'a\u0301', 'a\u00a0\u2028\u2029b', 'null'],
  ],
  email: [
    ...['@', 'a@b', 'ADA@Example.COM', 'ä@ö.example'],
    ...['x'.repeat(308), balloon.repeat(154)].map(name => `${name}@example.com`),
  ],
  age: [0, 1, 150],
  avatar: [
    ...['http://a', 'HTTPS://example.com/a.png?b=c&d#e'],
    ...['x'.repeat(2028), '漢'.repeat(676), '"'.repeat(1014)].map(path => `https://example.com/${path}`),
  ],
}

for (const kind of engineKinds) {
  describe(`Input of users, on ${kind.name}`, { skip: kind.skip }, () => {
    const app = shared(() => startTestAppOn(kind))

    const everyone = async () => bodyOf<unknown[]>(await send(app, 'GET /users'))

    it('R-ERR-14, R-ERR-7, R-USR-8, R-USR-9: without a name or an e-mail POST and PUT, which would create or replace, answer 400 with Name and email required, and PATCH refuses an empty one', async () => {
      const known = await createUser(app)
      const before = await everyone()
      for (const [what, value] of Object.entries(nothing)) {
        for (const field of ['name', 'email']) {
          for (const line of ['POST /users', `PUT /users/${known.id}`, 'PUT /users/4711'])
            assertRefusal(await send(app, line, { ...somebody(), [field]: value }), 400, required)
          if (what !== 'missing') assertRefusal(await send(app, `PATCH /users/${known.id}`, { [field]: value }), 400)
        }
      }
      assertRefusal(await send(app, 'POST /users', {}), 400, required)
      assertRefusal(await send(app, 'POST /users', { name: '', email: 'no address', age: -1 }), 400, required)
      assert.deepEqual(await everyone(), before)
    })

    for (const [field, values] of kind.kind === 'sqlite' ? Object.entries(badFields) : []) {
      it(`R-ERR-6: a bad ${field} is refused with a 400 that names it, by POST, PUT and PATCH, also of an absent user, and changes nothing`, async () => {
        const known = await createUser(app)
        const before = await everyone()
        for (const value of values) {
          const requests = {
            'POST /users': { ...somebody(), [field]: value },
            [`PUT /users/${known.id}`]: { ...somebody(), [field]: value },
            'PUT /users/4711': { ...somebody(), [field]: value },
            [`PATCH /users/${known.id}`]: { name: 'Changed', [field]: value },
            'PATCH /users/4711': { [field]: value },
            'PATCH /users/abc': { [field]: value },
          }
          for (const [line, body] of Object.entries(requests)) {
            const response = await send(app, line, body)
            assertRefusal(response, 400)
            assert.match(response.body, new RegExp(`^\\{"error":"${field} `), `${line} ${JSON.stringify(body)}`)
          }
        }
        assert.deepEqual(await everyone(), before)
      })
    }

    for (const [field, values] of Object.entries(goodFields)) {
      it(`a valid ${field} is stored unchanged, by POST, PUT and PATCH`, async () => {
        const { id } = await createUser(app)
        for (const value of values) {
          const body = { ...somebody(), [field]: value }
          const created = bodyOf(await send(app, 'POST /users', body), 201)
          assert.deepEqual(created, { id: created.id, ...body })
          assert.deepEqual(bodyOf(await send(app, `PUT /users/${id}`, body)), { id, ...body })
          assert.deepEqual(bodyOf(await send(app, `PATCH /users/${id}`, { [field]: value })), { id, ...body })
          assert.deepEqual(bodyOf(await send(app, `GET /users/${created.id}`)), { id: created.id, ...body })
        }
      })
    }

    it('a password of 8 to 128 characters is accepted unchanged, including spaces', async () => {
      for (const password of ['12345678', 'x'.repeat(128), ' '.repeat(8), balloon.repeat(4), balloon.repeat(64)]) {
        const { email } = await createUser(app, { password })
        assert.equal((await send(app, 'POST /tokens', { email, password })).status, 200)
        assertRefusal(await send(app, 'POST /tokens', { email, password: `${password.slice(0, -2)}y` }), 401)
      }
    })

    it('numbers may have any JSON notation: 3e1 and 30.0 are 30, -0 is 0, and 1e999 is refused', async () => {
      const withAge = async (age: string) => sendText(app, 'POST /users', `{"name":"A","email":"a@b","age":${age}}`)
      for (const age of ['1e999', '-1e999', '1e-5', '30.5', '9007199254740993']) assertRefusal(await withAge(age), 400)
      for (const age of ['3e1', '30.0']) assert.equal(bodyOf(await withAge(age), 201).age, 30)
      const { id } = bodyOf(await withAge('-0'), 201)
      assert.equal((await send(app, `GET /users/${id}`)).body, `{"id":${id},"name":"A","email":"a@b","age":0}`)
    })

    it('null for an optional field means absent, on POST and PUT', async () => {
      const { id, ...created } = await createUser(app, { age: null, avatar: null, password: null })
      assert.deepEqual(Object.keys(created).sort(), ['email', 'name'])
      const full = await createUser(app, { age: 30, avatar: 'https://example.com/a', password: 'right password' })
      const values = { name: 'A', email: full.email }
      const replaced = await send(app, `PUT /users/${full.id}`, { ...values, age: null, avatar: null, password: null })
      assert.deepEqual(bodyOf(replaced), { id: full.id, ...values })
      assert.equal((await send(app, 'POST /tokens', { email: full.email, password: 'right password' })).status, 200)
    })

    it('id, role, createdAt, unknown fields and those named like properties of Object.prototype are ignored, by POST, PUT and PATCH', async () => {
      for (const more of [
        '"id":77,"role":"admin","createdAt":"2000-01-01T00:00:00.000Z","token_mark":"m","passwordHash":"h","x":{}',
        '"__proto__":{"age":1,"role":"admin"}',
        '"\\u005f_proto__":{"age":1}',
        '"constructor":{"prototype":{"age":1}}',
        '"toString":1,"hasOwnProperty":null,"valueOf":"x"',
      ]) {
        const { name, email } = somebody()
        const text = `{${more},"name":"${name}","email":"${email}"}`
        const created = bodyOf(await sendText(app, 'POST /users', text), 201)
        assert.deepEqual(created, { id: created.id, name, email })
        for (const method of ['PUT', 'PATCH'])
          assert.deepEqual(bodyOf(await sendText(app, `${method} /users/${created.id}`, text)), created)
        const kept = sql`select id from users where role = 'member' and password_hash is null
          and token_mark <> 'm' and created_at > '2001' and id = ${created.id}`
        assert.deepEqual(await app.engine.read(kept), [[created.id]])
        for (const without of [`{"__proto__":${text}}`, `{${more}}`])
          assertRefusal(await sendText(app, 'POST /users', without), 400, required)
      }
      assertRefusal(await send(app, 'GET /users/77'), 404)
    })
  })
}
