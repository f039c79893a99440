import type { Stats } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../core/errors.ts'
import { answerError, sendError } from './errors.ts'

/** `GET /app/…`: the files of a folder, for pages of the operator's own. Files whose names begin with a dot are absent. */
export async function servePublicFiles(server: FastifyInstance, folder: string): Promise<void> {
  const { fastifyStatic } = await import('@fastify/static')
  server.setNotFoundHandler((_request, reply) => sendError(reply, 404, 'Not found'))
  await server.register(async scope => {
    scope.setErrorHandler(answerFileError)
    await scope.register(fastifyStatic, {
      root: folder,
      prefix: '/app/',
      redirect: true, // from the name of a folder to the folder, where relative links lead to its files
      dotfiles: 'ignore',
      decorateReply: false,
      cacheControl: false,
      setHeaders: reply => reply.header('cache-control', 'no-cache'),
      onFile: (path, stat) => refuseOthers(folder, path, stat),
    })
  })
  // Relative, because a gateway may publish the service below a prefix.
  server.get('/app', (_request, reply) => reply.header('cache-control', 'no-cache').redirect('app/', 308))
}

/**
 * A symbolic link must not publish what is outside of the folder. Opening a named pipe would take one of Node's four
 * threads for files and passwords, for as long as nobody writes to the pipe.
 */
async function refuseOthers(folder: string, path: string, stat: Stats): Promise<void> {
  const [inside, file] = await Promise.all([realpath(folder), realpath(path)])
  if (!stat.isFile() || !file.startsWith(inside + sep)) throw new AppError('not-found', 'Not found')
}

/** A path that names no file of the folder, however it is written, is absent. */
function answerFileError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { statusCode = 500, code } = error
  if (statusCode >= 500 && code !== 'ELOOP') return answerError(error, request, reply)
  if (statusCode === 412) return sendError(reply, 412, 'The file has changed')
  if (statusCode === 416) return sendError(reply, 416, 'The file is shorter')
  return sendError(reply, 404, 'Not found')
}
