import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startTestAppOn } from '../support/app.ts'
import { postgres } from '../support/engines.ts'
import { ask } from '../support/http.ts'
import { send, somebody } from '../support/rest.ts'
import { waitUntil } from '../support/wait.ts'
import { connectTo } from './transaction.ts'

describe('Readiness on PostgreSQL', { skip: postgres.skip }, () => {
  it('the service is not ready while reads work but writes do not, and is ready again when writes work', async () => {
    await using app = await startTestAppOn(postgres, {})
    await using admin = await connectTo(app.database.location)
    const name = new URL(app.database.location).pathname.slice(1)
    const setReadOnly = async (value: 'on' | 'off') => {
      await admin.query(`alter database ${name} set default_transaction_read_only = ${value}`)
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
                         where datname = current_database() and application_name = 'duet'`)
    }
    const isReady = async () => (await ask(`${app.url}/health/ready`)).status
    await setReadOnly('on')
    await waitUntil(async () => (await isReady()) === 503)
    assert.equal((await ask(`${app.url}/users`)).status, 200)
    assert.equal((await send(app, 'POST /users', somebody())).status, 503)
    await setReadOnly('off')
    await waitUntil(async () => (await isReady()) === 200)
  })
})
