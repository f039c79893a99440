import { startTestAppOn } from '../../support/app.ts'
import { sqlite } from '../../support/engines.ts'
import { read } from '../../support/graphql.ts'
import { createMember } from '../../support/rest.ts'

/** An app without a rate limit, with one post, which Ann has written. */
export async function startWithPost() {
  const app = await startTestAppOn(sqlite, { RATE_LIMIT_MAX: '0' })
  const ann = await createMember(app)
  await read(app, 'mutation { createPost(title: "T", content: "C") { id } }', ann)
  return Object.assign(app, { ann })
}
