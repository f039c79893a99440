import type { Config } from '../config.ts'
import { version } from '../http/pages/home.ts'
import type { OpenDatabase } from '../storage/database.ts'
import type { Base } from './base.ts'

/** Tells what runs here, and how busy the connections to the database are. */
export function addGauges({ database }: Config, { metrics }: Base, { poolUse }: OpenDatabase['engine']): void {
  metrics.buildInfo({ version, node: process.version, engine: database.kind })
  if (poolUse === undefined) return
  const inUse = 'Connections to PostgreSQL that are in use or being opened'
  metrics.gauge('duet_pool_connections_in_use', inUse, poolUse.inUse)
  metrics.gauge('duet_pool_waiting', 'Reads and writes that wait for a connection', poolUse.waiting)
}
