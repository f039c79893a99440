import { workerData } from 'node:worker_threads'
import { copyDatabase } from './copy.ts'

/** A thread of its own for `duet backup`: copying blocks, and the main thread has to notice signals meanwhile. */
export interface CopyData {
  readonly path: string
  readonly draft: string
}

const { path, draft }: CopyData = workerData
copyDatabase(path, draft)
