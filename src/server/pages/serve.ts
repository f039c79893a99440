import type { FastifyInstance } from 'fastify'
import { serveApiReference } from './api-reference.ts'
import { servePageAssets } from './frame.ts'
import { serveGuides } from './guides.ts'

/** Serves the documentation for browsers, and what all pages need. */
export function servePages(server: FastifyInstance): void {
  servePageAssets(server)
  serveApiReference(server)
  serveGuides(server)
}
