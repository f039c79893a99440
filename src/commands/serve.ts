import type { App } from '../app.ts'
import type { Config } from '../config.ts'
import { demoLogin } from '../core/demo.ts'
import { lastResort } from '../http/lifecycle.ts'
import { createLogger, standardOutput } from '../http/logging.ts'
import { keepTickShape, prepareProcess, settle } from '../lib/v8.ts'

/** `duet serve`: runs until the process receives SIGTERM or SIGINT. */
export async function serve(config: Config): Promise<void> {
  prepareProcess({ requestsWait: config.database.kind === 'postgres' })
  void keepTickShape()
  const output = standardOutput()
  const logger = createLogger(config.logLevel, output)
  let app: App | undefined
  const exit = async (code: number) => {
    await output.finish()
    process.exit(code)
  }
  const stop = async () => app?.stopAtOnce()
  const fail = lastResort(logger, stop, exit)
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)
  // Registered before the start, because without a listener these signals end the process.
  process.on('SIGUSR2', () => app?.toggleMaintenance())
  process.on('SIGHUP', () => app?.reloadKeys())
  const signalled = Promise.withResolvers<void>()
  // Called when it serves: until then a signal ends the process at once. The listeners stay registered, so a second signal
  // during the shutdown has no effect.
  const stopAtSignal = () => {
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, signalled.resolve)
  }
  process.stdout.on('error', () => {}) // the reader of stdout has closed it; keep serving
  const { Argon2Passwords } = await import('../security/passwords.ts')
  const passwords = new Argon2Passwords()
  if (config.threads > 1) {
    const { startThreads } = await import('../threads/supervisor.ts')
    const write = (lines: string) => output.write(lines)
    app = await startThreads(config, { logger, passwords, write, onServing: stopAtSignal, onGiveUp: fail })
  } else {
    const { startApp, systemClock, systemRandomness } = await import('../app.ts')
    app = await startApp(config, { logger, clock: systemClock, randomness: systemRandomness, passwords })
    stopAtSignal()
  }
  if (!config.production) process.stdout.write(greeting(app.url, config, app.demoLoginWorks))
  await settle()
  await signalled.promise
  logger.info('stopping')
  await app[Symbol.asyncDispose]()
  logger.info('stopped')
  await exit(0) // not only when timers have ended: OpenTelemetry tries for 30 seconds to send spans to a receiver that is away
}

function greeting(url: string, { explorers: withPages, mail }: Config, withDemoData: boolean): string {
  const home = withPages ? `    Home            ${url}/             (open it in a browser)\n` : ''
  const docs = withPages ? `${url}/docs         (as data: ${url}/openapi.json)` : `${url}/openapi.json`
  const demo = `
  There is demo data to play with. Log in as ${demoLogin.email}, password ${demoLogin.password}:

    curl -s ${url}/tokens -H 'Content-Type: application/json' -d '${JSON.stringify(demoLogin)}'
`
  const mails = `
  SMTP_URL is not set: mails for forgotten passwords are written here, not sent.
`
  return `
  Duet is ready.

${home}    GraphQL         ${url}/graphql
    HTTP interface  ${url}/users        (also under ${url}/api)
    Docs            ${docs}
    Health          ${url}/health/ready
${withDemoData ? demo : ''}${mail?.kind === 'log' ? mails : ''}
  Press Ctrl-C to stop.

`
}
