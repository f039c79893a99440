import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { engineKinds } from './support/engines.ts'
import { onlyInFull } from './support/form.ts'
import { copyOfProject, Guide } from './support/guide.ts'
import { tokenKeys } from './support/keys.ts'
import { serveDuet } from './support/process.ts'
import { assertRefusal } from './support/refusal.ts'
import { bodyOf, logIn, send } from './support/rest.ts'

const field = new Guide('add-a-field')
const guides = [field, new Guide('add-a-mutation')]

describe('The guides that add a field and a mutation', () => {
  let copy: ReturnType<typeof copyOfProject>
  before(() => {
    copy = copyOfProject()
    for (const guide of guides) guide.follow(copy.path)
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

  it('list the files they change; a field needs at most five source files', () => {
    for (const { text, files } of guides) {
      const under = (...folders: readonly string[]) =>
        files.filter(file => folders.some(folder => file.startsWith(`${folder}/`))).length
      const [source, migrations, tests] = [under('src', 'api'), under('migrations'), under('test')]
      assert.equal(source + migrations + tests, files.length)
      const sentence = `It touches ${source} source files, ${migrations} migrations and ${tests} test files`
      assert.ok(text.includes(sentence), `The guide does not say: ${sentence}`)
    }
    assert.ok(field.files.filter(file => /^(src|api)\//.test(file)).length <= 5)
  })

  it('lead to a program that passes the type check and the format check', async () => {
    await run('tsc')
    const changed = new Set(guides.flatMap(({ files }) => files.filter(file => file.endsWith('.ts'))))
    await run('biome', 'check', '--error-on-warnings', '--vcs-enabled=false', ...changed)
  })

  it('lead to tests that pass', { skip: onlyInFull }, async () => {
    const touched = guides.flatMap(({ files }) => files.filter(file => file.endsWith('.test.ts')))
    const others = ['test/architecture.test.ts', 'test/storage/migrations.test.ts', 'test/graphql/oracle.test.ts']
    await run('test/run.ts', ...new Set([...touched, ...others]))
  })

  for (const kind of engineKinds) {
    it(`lead to a service that has both, on ${kind.name}`, { skip: kind.skip }, async () => {
      await using database = await kind.createEmpty()
      const address = kind.kind === 'sqlite' ? `sqlite:${database.location}` : database.location
      const env = { DATABASE_URL: address, TOKEN_KEYS: tokenKeys, DEMO_DATA: 'true', ACCESS_POLICY: 'enforced' }
      await using duet = serveDuet(env, { root: copy.path })
      const app = await duet.address()
      const user = await logIn(app, 'grace@example.com', 'demo-password')
      const graphql = async (query: string, token?: string, status = 200): Promise<unknown> =>
        bodyOf(await send(app, 'POST /graphql', { query }, token), status)

      const { id } = bodyOf(await send(app, 'GET /users/me', undefined, user))
      const setBio = async (bio: unknown, token?: string) => send(app, `PATCH /users/${id}`, { bio }, token)
      assertRefusal(await setBio('Writes.'), 401)
      assertRefusal(await setBio(5, user), 400, 'bio must be a string')
      assertRefusal(await setBio('x'.repeat(501), user), 400)
      const changed: { bio?: string } = bodyOf(await setBio('Writes.', user))
      assert.equal(changed.bio, 'Writes.')
      assert.deepEqual(await graphql(`{ user(id: ${id}) { bio } }`), { data: { user: { bio: 'Writes.' } } })

      const unlike = 'mutation { unlikePost(id: 1) { likes } }'
      await graphql(unlike, undefined, 401)
      await graphql('mutation { unlikePost(id: 123456789) { likes } }', user, 404)
      const likes = async (mutation: string) =>
        JSON.stringify(await graphql(`mutation { all: ${mutation}(id: 1) { likes } }`, user))
      const liked = await likes('likePost')
      await likes('likePost')
      assert.equal(await likes('unlikePost'), liked)
    })
  }
})
