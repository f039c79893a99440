import { parentPort } from 'node:worker_threads'
import * as bundle from '@graphql-yoga/render-graphiql/graphiql'
import { compress } from '../../../server/assets.ts'

// Runs in its own thread: the bundle is a module of nine megabytes of text, which takes a quarter of a second to load.
const parts = Object.entries({
  css: bundle.css,
  js: bundle.js,
  editor: bundle.editorWorkerService,
  json: bundle.jsonWorker,
  graphql: bundle.graphqlWorker,
})
const compressed = await Promise.all(parts.map(async ([name, text]) => [name, await compress(text)] as const))
parentPort?.postMessage(Object.fromEntries(compressed))
