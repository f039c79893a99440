import { parentPort } from 'node:worker_threads'
import * as bundle from '@graphql-yoga/render-graphiql/graphiql'

// Runs in its own thread: the bundle is a module of nine megabytes of text, which takes a quarter of a second to load.
const { css, js, editorWorkerService: editor, jsonWorker: json, graphqlWorker: graphql } = bundle
parentPort?.postMessage({ css, js, editor, json, graphql })
