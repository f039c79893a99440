import { Writable } from 'node:stream'
import type { Logger } from 'pino'
import { createLogger } from '../../src/http/logging.ts'

export type LogLine = Readonly<Record<string, unknown>>

/** A logger like that of the service, whose lines are collected for the test. */
export function collectLogs(level = 'info'): { logger: Logger; logs: LogLine[] } {
  const logs: LogLine[] = []
  const destination = new Writable({
    write(line: Buffer, _encoding, done) {
      logs.push(JSON.parse(line.toString('utf8')))
      done()
    },
  })
  return { logger: createLogger(level, destination), logs }
}
