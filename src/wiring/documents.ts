import type { GraphQLSchema } from 'graphql'
import type { Config } from '../config.ts'
import { Documents } from '../graphql/language/documents.ts'
import { AutomaticDocuments } from '../graphql/persisted/automatic.ts'
import { readManifest } from '../graphql/persisted/manifest.ts'
import { TrustedDocuments } from '../graphql/persisted/trusted.ts'

/** Any document, or only those of the manifest that `TRUSTED_DOCUMENTS` names. */
export async function documentSource(config: Config, schema: GraphQLSchema) {
  const { queryMaxDepth, queryMaxComplexity, introspection, production, trustedDocuments } = config
  // Suggestions would reveal names of the schema too.
  const suggestions = introspection && !production
  const documents = new Documents({ schema, maxDepth: queryMaxDepth, suggestions, introspection })
  if (trustedDocuments === undefined) return new AutomaticDocuments(documents)
  return new TrustedDocuments(documents, await readManifest(trustedDocuments), queryMaxComplexity)
}
