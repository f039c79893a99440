import type { Config } from '../config.ts'
import type { Account } from '../core/store.ts'
import { createStore } from '../storage/store.ts'
import { complain } from './complain.ts'
import { isRole, roleComplaint } from './roles.ts'
import { refuseTemporary, requireFile, withDatabase } from './with-database.ts'

/** The number of users that are read at a time. */
const pageSize = 1000

/** `duet users list`: one line for each user, its columns separated by tabs. */
export async function listUsers(config: Config, role: unknown): Promise<number> {
  if (role !== undefined && !isRole(role)) return complain(roleComplaint)
  refuseTemporary(config.database)
  requireFile(config.database)
  process.stdout.on('error', () => process.exit(0)) // the reader has closed the pipe, as `head` does
  console.log('id\trole\tlogin\temail\tname')
  await withDatabase(config, async engine => {
    const store = createStore(engine)
    let page: readonly Account[] = []
    do {
      page = await store.listAccounts(page.at(-1)?.id ?? 0, pageSize)
      for (const user of page) if (role === undefined || user.role === role) console.log(line(user))
    } while (page.length === pageSize)
  })
  return 0
}

function line({ id, role, canLogIn, email, name }: Account): string {
  return [id, role, canLogIn ? 'yes' : 'no', harmless(email), harmless(name)].join('\t')
}

/**
 * Replaces control and format characters and line separators. Users choose these texts. They must not control the
 * operator's terminal, show letters in another order or hide some.
 */
function harmless(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\ufffd')
}
