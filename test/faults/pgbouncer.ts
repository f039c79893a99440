import { Daemon } from '../support/daemon.ts'

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
