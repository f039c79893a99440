import { once } from 'node:events'
import { createServer } from 'node:http'
import pg from 'pg'
import { Daemon } from '../support/daemon.ts'
import { listen } from '../support/ports.ts'

/**
 * HAProxy in front of PostgreSQL servers. It connects clients to the server that accepts writes. It asks each server
 * for its role over HTTP, as is usual with Patroni, and cuts connections to a server that is down or a standby.
 */
export async function startDatabaseProxy(servers: readonly URL[], parts: AsyncDisposableStack): Promise<Daemon> {
  const checks = await Promise.all(servers.map(server => serveRole(server, parts)))
  const lines = servers.map(({ host }, index) => `server s${index} ${host} check port ${checks[index]}`)
  const configuration = (port: number) => `
defaults
  mode tcp
  retries 0
  timeout connect 1s
  timeout client 10m
  timeout server 10m
  timeout check 1m
listen primary
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  default-server inter 250ms fall 1 rise 1 on-marked-down shutdown-sessions
  ${lines.join('\n  ')}
`
  const files = (_: string, port: number) => ({ 'haproxy.cfg': configuration(port) })
  return parts.use(await Daemon.start({ program: 'haproxy', args: () => ['-db', '-f', 'haproxy.cfg'], files }))
}

/** Answers 200 while a server is a primary, else 503. Returns the port. */
async function serveRole({ href }: URL, parts: AsyncDisposableStack): Promise<number> {
  const listener = createServer(async (_request, response) => {
    response.writeHead((await isPrimary(href)) ? 200 : 503, { connection: 'close' }).end()
  })
  parts.defer(async () => void (await once(listener.close(), 'close')))
  return await listen(listener)
}

export async function isPrimary(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query('select pg_is_in_recovery() as standby')
    return !rows[0].standby
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

/** PgBouncer in front of a server. A client has a connection for one transaction only, and there are few connections. */
export function startPgBouncer(server: URL): Promise<Daemon> {
  return Daemon.start({
    program: 'pgbouncer',
    args: () => ['-q', 'pgbouncer.ini'],
    files: (folder, port) => ({
      'users.txt': `"${server.username}" ""\n`,
      'pgbouncer.ini': `
        [databases]
        * = host=${server.hostname} port=${server.port}
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = ${port}
        unix_socket_dir =
        auth_type = trust
        auth_file = ${folder}/users.txt
        pool_mode = transaction
        default_pool_size = 4
        server_login_retry = 1
        ignore_startup_parameters = ${settings.join()}
      `,
    }),
  })
}

// By default PgBouncer refuses clients that send these settings. With this option it ignores them.
const settings = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'options']
