import { test } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { engineKinds } from '../support/engines.ts'
import { cheapPasswords } from '../support/passwords.ts'
import { assertRefusal } from '../support/refusal.ts'
import { createMember, logIn, send, somebody } from '../support/rest.ts'

for (const kind of engineKinds) {
  test(`a write whose token is revoked while its password is being hashed is refused, and neither creates the user again nor changes the password, on ${kind.name}`, {
    skip: kind.skip,
  }, async () => {
    const passwords = cheapPasswords()
    const [late, timely] = ['a late password', 'a timely password']
    let hashing = Promise.withResolvers<void>()
    let asked = Promise.withResolvers<void>()
    const hash = async (password: string) => {
      if (password === late) {
        asked.resolve()
        await hashing.promise
      }
      return await passwords.hash(password)
    }
    const matches = passwords.matches.bind(passwords)
    await using app = await startTestAppOn(kind, { ACCESS_POLICY: 'enforced' }, { passwords: { hash, matches } })
    for (const meanwhile of ['DELETE', 'PATCH']) {
      hashing = Promise.withResolvers()
      asked = Promise.withResolvers()
      const { id, email, token } = await createMember(app)
      const replaced = send(app, `PUT /users/${id}`, { ...somebody(), email, password: late }, token)
      await asked.promise
      await send(app, `${meanwhile} /users/${id}`, meanwhile === 'PATCH' ? { password: timely } : undefined, token)
      hashing.resolve()
      assertRefusal(await replaced, 401)
      assertRefusal(await send(app, 'POST /tokens', { email, password: late }), 401)
      if (meanwhile === 'PATCH') await logIn(app, email, timely)
    }
  })
}
