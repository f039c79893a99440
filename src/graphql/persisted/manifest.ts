import { readFile } from 'node:fs/promises'
import { ConfigError } from '../../core/errors.ts'
import { isObject } from '../../core/input.ts'

/** A document that clients may run, with the id by which they name it. */
export type TrustedDocument = ReturnType<typeof documentsIn>[number]

export class ManifestError extends ConfigError {
  constructor(problem: string) {
    super(`TRUSTED_DOCUMENTS: ${problem}`)
  }
}

export async function readManifest(path: string) {
  const json = await readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
    throw new ManifestError(`the file cannot be read (${code})`)
  })
  return documentsIn(json)
}

/**
 * The documents of a manifest: an object with a text for each id, as Relay's compiler and GraphQL Code Generator write it, or the
 * format of Apollo's generator.
 */
export function documentsIn(json: string) {
  let manifest: unknown
  try {
    manifest = JSON.parse(json)
  } catch {
    throw new ManifestError('is not valid JSON')
  }
  if (!isObject(manifest)) throw new ManifestError('must be a JSON object')
  const documents = 'format' in manifest ? apolloDocuments(manifest) : mappedDocuments(manifest)
  if (documents.length === 0) throw new ManifestError('has no operation')
  return documents
}

function mappedDocuments(manifest: object) {
  return Object.entries(manifest).map(([id, text]: [string, unknown]) => {
    if (typeof text === 'string') return { id, text }
    throw new ManifestError(`the document of ${shown(id)} must be a text`)
  })
}

function apolloDocuments({ format, version, operations }: Readonly<Record<string, unknown>>) {
  if (format !== 'apollo-persisted-query-manifest' || version !== 1)
    throw new ManifestError('has another format or version than apollo-persisted-query-manifest 1')
  if (!Array.isArray(operations)) throw new ManifestError('operations must be a list')
  const ids = new Set<string>()
  return operations.map((operation: unknown, index) => {
    const { id, body } = isObject(operation) ? operation : {}
    if (typeof id !== 'string' || id === '' || typeof body !== 'string')
      throw new ManifestError(`operation ${index + 1} must have the texts id and body`)
    if (ids.has(id)) throw new ManifestError(`two operations have the id ${shown(id)}`)
    ids.add(id)
    return { id, text: body }
  })
}

/** An id, short enough for a message and on one line. */
export function shown(id: string): string {
  return JSON.stringify(id.length > 70 ? `${id.slice(0, 70)}…` : id)
}
