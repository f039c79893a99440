import { DatabaseSync } from 'node:sqlite'
import { workerData } from 'node:worker_threads'

// A thread of its own for `duet backup`: copying blocks, and the main thread has to notice signals meanwhile.
const { path, draft } = workerData as Readonly<Record<'path' | 'draft', string>>
using source = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
const isOurs = source.prepare("select 1 from sqlite_schema where name = 'schema_migrations'").get() !== undefined
if (!isOurs) throw new Error('there is no database of Duet at this path')
source.prepare('vacuum into ?').run(draft)
using copy = new DatabaseSync(draft)
copy.exec('pragma user_version = 0') // without the claim number, a server notices when a copy replaces its file
const [{ integrity_check: verdict } = {}] = copy.prepare('pragma integrity_check').all()
if (verdict !== 'ok') throw new Error(`the copy is damaged: ${verdict}`)
