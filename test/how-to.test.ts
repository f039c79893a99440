import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { copyOfProject, Guide } from './guide.ts'
import { engineKinds } from './support/engines.ts'
import { onlyInFull } from './support/form.ts'
import { tokenKeys } from './support/keys.ts'
import { serveDuet } from './support/process.ts'
import { assertRefusal } from './support/refusal.ts'
import { bodyOf, logIn, send } from './support/rest.ts'

describe('The guide that adds a field', () => {
  const guide = new Guide('add-a-field')
  let copy: ReturnType<typeof copyOfProject>
  before(() => {
    copy = copyOfProject()
    guide.follow(copy.path)
  })
  after(() => copy[Symbol.dispose]())

  /** Runs a program of the project in the copied tree. */
  async function run(program: string, ...args: readonly string[]): Promise<void> {
    // With the first variable, Node does not run tests that a test starts. The second one selects the long forms.
    const { NODE_TEST_CONTEXT, DUET_TEST_FULL, ...env } = process.env
    const isTool = !program.endsWith('.ts')
    const command = isTool ? join(copy.path, 'node_modules', '.bin', program) : process.execPath
    const options = { cwd: copy.path, env, maxBuffer: 16 * 1024 * 1024 }
    const outcome = promisify(execFile)(command, isTool ? args : [program, ...args], options)
    await outcome.catch(({ stdout, stderr }) => assert.fail(`${program} failed:\n${stdout}${stderr}`))
  }

  it('counts the files that it changes, of which at most five are sources', () => {
    const under = (...folders: readonly string[]) =>
      guide.files.filter(file => folders.some(folder => file.startsWith(`${folder}/`))).length
    const [source, migrations, tests] = [under('src', 'api'), under('migrations'), under('test')]
    assert.equal(source + migrations + tests, guide.files.length)
    const sentence = `It touches ${source} source files, ${migrations} migrations and ${tests} test files`
    assert.ok(guide.text.includes(sentence), `The guide does not say: ${sentence}`)
    assert.ok(source <= 5)
  })

  it('leads to a program that passes the type check and the format check', { skip: onlyInFull }, async () => {
    await run('tsc')
    const changed = guide.files.filter(file => file.endsWith('.ts'))
    await run('biome', 'check', '--error-on-warnings', '--vcs-enabled=false', ...changed)
  })

  it('leads to tests that pass', { skip: onlyInFull }, async () => {
    await run('client/generate-schema.ts')
    await run('client/build.ts')
    await run('docs/build/main.ts')
    const touched = guide.files.filter(file => file.endsWith('.test.ts'))
    const others = ['client/build', 'architecture', 'storage/migrations', 'graphql/oracle']
    await run('test/run.ts', ...new Set([...touched, ...others.map(name => `test/${name}.test.ts`)]))
  })

  for (const kind of engineKinds) {
    it(`leads to a service that has it, on ${kind.name}`, { skip: kind.skip }, async () => {
      await using database = await kind.createEmpty()
      const env = { DATABASE_URL: database.url, TOKEN_KEYS: tokenKeys, DEMO_DATA: 'true', ACCESS_POLICY: 'enforced' }
      await using duet = serveDuet(env, { root: copy.path })
      const app = await duet.address()
      const user = await logIn(app, 'grace@example.com', 'demo-password')
      const { id } = bodyOf(await send(app, 'GET /users/me', undefined, user))
      const setBio = async (bio: unknown, token?: string) => send(app, `PATCH /users/${id}`, { bio }, token)
      assertRefusal(await setBio('Writes.'), 401)
      assertRefusal(await setBio(5, user), 400, 'bio must be a string')
      assertRefusal(await setBio('x'.repeat(501), user), 400)
      const changed: { bio?: string } = bodyOf(await setBio('Writes.', user))
      assert.equal(changed.bio, 'Writes.')
      const read = await send(app, 'POST /graphql', { query: `{ user(id: ${id}) { bio } }` }, user)
      assert.deepEqual(bodyOf<unknown>(read), { data: { user: { bio: 'Writes.' } } })
    })
  }
})
