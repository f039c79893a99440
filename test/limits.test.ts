import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { settings } from '../src/config.ts'

/** The tests of each row of docs/limits.md, by their files and parts of their names. */
const tests: Readonly<Record<string, string | readonly string[]>> = {
  'requests of a client': [
    'http/rate-limit: of 200 requests of one client exactly 100 are accepted, and 100 get 429 with Retry-After',
    'http/requests-at-once: a fiftieth of the rate limit may be in progress, and always two',
  ],
  'other requests of a client: `OPTIONS`, `/`, `/health/…`, `/metrics` without a body, malformed and dropped ones':
    'http/refused-clients: OPTIONS, /, health, metrics, malformed requests and CONNECT are limited to 1,000 a minute together, beside the rate limit',
  'refused requests of a client':
    'http/refused-clients: a client above twice the rate limit is refused at accept until its window ends, and in the next window again',
  'windows that limits remember':
    'limits/rate-limiter: remember 100,000 clients, nearly all of them, and mistake none for another',
  'limits in Redis': [
    'limits/rate-limiter: leave nothing there that tells who was counted, or that lasts longer than the window',
    'limits/redis-outages: while Redis hangs; all waiting calls are answered after one timeout',
  ],
  'connections of a client':
    'http/connections: a connection beyond it is closed at once, other clients have their own limit, and a closed connection makes room',
  'pipelined requests of a connection':
    'http/connections: close their connection if more than 100 wait, and none of these is processed',
  'time to send the headers, a request, the next request':
    'http/connections: the timeouts of the app: 10 s for the headers, 30 s for a request, 72 s between two requests',
  'headers, and parts of them that are read': [
    'http/connections: what is doubtful or too large is refused with its status',
    'graphql/http: an Accept header of more than 2,048 characters counts as none',
    'http/origins: a preflight allows the headers that it asks for, and otherwise those that the service reads',
    'http/errors: an id of the client that is unusual, or sent twice, is replaced by a new one, and not logged',
  ],
  'size of a body':
    'http/bodies: a body of exactly the limit is accepted, and one byte more is refused with 413, with and without Content-Length',
  'values of a body, and its pieces': [
    'http/bodies: of more than 20,000 values is refused with 400',
    'http/bodies: in more than 1,024 pieces is refused with 413',
  ],
  'rest of a body that nobody reads': [
    'http/bodies: a connection on which a refused body never ends is closed',
    'http/refused-clients: a chunked body that nobody reads closes its connection when it is too long',
  ],
  'time without reading an answer or a message': [
    'http/unread: a client that reads nothing of its answer for 30 seconds is disconnected within a minute',
    'subscriptions/lifecycle: is disconnected after 30 seconds without reading, however many pongs it sends',
  ],
  'unread answers and messages of all clients':
    'http/unread: while clients leave more than 256 MiB unread, large answers are refused with 503, and small ones are sent',
  'a log line, and lines that nobody reads': [
    'http/request-log: a log line has a bounded length, whatever a client sends or an error contains',
    'http/request-log: of lines that nobody reads in time 4 MiB are kept',
  ],
  'series and texts of the metrics': [
    'http/metrics: histograms count as those of prom-client do, and requests have at most 150 series',
    'http/metrics: scrapes at the same time share one text',
  ],
  'threads that end': 'threads/threads: a thread that ends is replaced while the other continues',
  'logins of a client': [
    'security/login-limits: after ten failed logins with one e-mail even the right password is refused, until a minute after the first',
    'security/login-limits: a client has a hundred attempts for all e-mails together, and another client has its own limit',
    'mail/password-resets: requests for an e-mail count like failed logins with it, and wrong secrets like failed logins of the client',
  ],
  mails: [
    'mail/password-resets: 10,000 mails wait at most, then requests get 503',
    'mail/password-resets: a user gets five mails in half an hour, and requests while one waits are one',
    'mail/mail-servers: a mail server that hangs is given up',
    'mail/mail-servers: a mail that a server refuses or loses is sent later, for ten minutes, while requests are answered',
    'mail/password-resets: a link is valid for 30 minutes after its mail',
  ],
  'passwords that are checked or hashed at once': [
    'security/passwords: logins beyond the queue limit, which threads share, get 503 with Retry-After, and the others their usual answer',
    'security/passwords: few passwords are hashed at once, few wait, and further ones are rejected at once',
  ],
  'users, orders or payments of a page': [
    'rest/lists: parameters that are wrong, sent twice, or cannot be used together are refused with 400, also for an absent user',
    'rest/users: a page has as many users as its limit, however long their texts are, and at most 4.1 MB',
  ],
  'rows that a page skips':
    'rest/lists: parameters that are wrong, sent twice, or cannot be used together are refused with 400, also for an absent user',
  'a search for users': [
    'rest/lists: parameters that are wrong, sent twice, or cannot be used together are refused with 400, also for an absent user',
    'rest/lists: q of many users gives full pages, wherever among the others they are',
  ],
  'content that one transaction deletes': [
    'storage/deleted-users: is deleted in several steps of at most 200 posts or comments each',
    'storage/deleted-users: is deleted in steps of 200 comments, and its event is told at the end',
    'storage/deleted-users: is gone when its deletion is answered, and is not deleted together with other changes',
  ],
  'names and e-mails, an avatar, a password':
    'rest/users-input: is refused with a 400 that names it, by POST, PUT and PATCH, also of an absent user, and changes nothing',
  'items of an order': 'rest/orders-input: is answered with 400, also for an absent user, and nothing is stored',
  'idempotency keys': 'storage/purges: the idempotency keys that have expired',
  'a document': [
    'graphql/document-bounds: 64 KiB are allowed and one byte more is not',
    'graphql/document-bounds: 1,000 tokens are allowed and one more is not, without comments and commas',
  ],
  'names, fields of one name, nesting of literals and types': [
    'graphql/document-bounds: may select from 100 fields of one name or alias, wherever they are, and is refused as too large from 101 on',
    'graphql/document-bounds: is executed, and a larger one is refused with DOCUMENT_TOO_LARGE, by POST and over a socket',
    'graphql/document-bounds: is validated if a literal or a type nests 32 deep, and refused as too large from 33 on',
  ],
  'depth of an operation': 'graphql/limits: R-LIM-5',
  'cost of an operation': 'graphql/limits: a cost of 1000 is allowed, and an operation of 1001 is not executed',
  'fields and lists of an operation, with its fragments expanded': [
    'graphql/documents: is refused as a subscription of more than 500 fields',
    'storage/select: of more lists than allowed is refused in a query and in a mutation, and then nothing is changed',
  ],
  'fields of an introspection answer':
    'graphql/document-bounds: with a too large answer is refused, and 5,000 fields are allowed',
  'rows skipped by an operation': 'graphql/limits: is refused before it is executed, and 100,000 are allowed',
  'values of one variable': 'graphql/documents: a variable must be a single value',
  'text that a mutation stores': [
    'graphql/mutations: a long text of control characters is refused with 400',
    'graphql/mutations: an operation with more than 1 MiB of text, counting each use of a variable, stores nothing',
  ],
  'input of a client that errors repeat': 'graphql/document-bounds: errors repeat at most 100 characters of the input',
  'cached texts, documents and plans': [
    'graphql/persisted-documents: texts that were not used for long are forgotten, and can be sent again',
    'graphql/documents: an unused document is evicted after',
    'graphql/documents: take at most 32 MiB together with their documents and statements',
  ],
  'sockets of a client':
    'subscriptions/socket-limits: are limited: one more is refused with 429, and a closed one makes room',
  'time without `connection_init`':
    'subscriptions/lifecycle: 4408 for a socket without connection_init within three seconds, and others stay open',
  'a message': [
    'subscriptions/protocol: 1009 for a message of more than 256 KiB',
    'subscriptions/protocol: a nested message is accepted up to 64 levels, and closes its socket above, for every type',
    'subscriptions/protocol: messages of more than 500 values are refused with 4400',
    'subscriptions/protocol: messages in more than 64 fragments are refused with 1008',
    'subscriptions/protocol: a ping is answered with its payload up to 1 KiB of JSON',
  ],
  'messages and frames of a socket, of all sockets of a client': [
    'subscriptions/socket-limits: close their socket with 1008 above 50 per second over ten seconds, and other sockets stay open',
    'subscriptions/socket-limits: of all sockets of a client together are limited to those of a fiftieth of SOCKETS_PER_CLIENT',
    'subscriptions/socket-limits: count by their size',
  ],
  'operations of a socket at once':
    'subscriptions/protocol: of 101 subscriptions 100 are accepted, the last gets SUBSCRIPTION_LIMIT_EXCEEDED',
  'clients that log in or subscribe at once': [
    'subscriptions/conversation: of many clients that log in and subscribe at once, a few are looked at at a time',
    'subscriptions/clients: cut off and resume at once wait their turn: each gets every event once and in order, and no error',
  ],
  'different subscriptions':
    'subscriptions/socket-limits: are limited over all its sockets with SUBSCRIPTION_LIMIT_EXCEEDED, and other clients are not affected',
  'time to read an event for a subscription': 'subscriptions/socket-limits: is ended with SUBSCRIPTION_TOO_EXPENSIVE',
  'events that wait for a subscription': 'subscriptions/fan-out: are in time is ended if it is a minute behind',
  'events that wait for a socket': [
    'subscriptions/conversation: a socket whose client does not read is closed when more than 1 MiB waits, and not before',
    'subscriptions/catching-up: gets no more until it reads, and then everything',
  ],
  'events that can be resumed': [
    'subscriptions/resume: is refused with POSITION_UNKNOWN at a position that is not ours, malformed or no longer kept',
    'storage/purges: deletes exactly the events older than an hour and a minute',
  ],
  'time of an operation in the database': 'storage/postgres: answers 503 in time while the database hangs',
  'size of an answer of GraphQL': [
    'storage/select: has at most two MiB for all fields together, and above that nothing is changed',
    'subscriptions/transports: an event above 262,144 characters ends its subscription with RESPONSE_TOO_LARGE, and no others',
  ],
  'operations that wait for the store':
    'storage/postgres: rejects with 503 at once if too many operations wait for connections',
  'connections that writes hold':
    'storage/postgres: uses at most four fifths of its connections for writes that wait for a lock, and continues reading',
  'prepared statements of a connection':
    'storage/postgres: keeps a limited number of prepared statements per connection, named from their second use on',
  'requests in the log, posts in the list': [
    'browser/console-state: the log of the console keeps the newest 200 requests, and 50 health checks beside them',
    'browser/posts-state: shows the first post of all at once, and at most 500 unless the user loads older ones',
  ],
}

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'limits.md'), 'utf8')

test('every row of docs/limits.md has a test', () => {
  const rows = page.split('\n').filter(line => line.startsWith('| ') && !line.startsWith('| What can grow'))
  assert.deepEqual(
    rows.map(row => row.split('|')[1]?.trim()),
    Object.keys(tests),
  )
  for (const named of Object.values(tests).flat()) {
    const [, file, title = ''] = /^([\w/-]+): (.+)$/.exec(named) ?? assert.fail(named)
    const text = readFileSync(join(import.meta.dirname, `${file}.test.ts`), 'utf8').replaceAll("\\'", "'")
    assert.ok(text.includes(title), `${file} has no test "${title}"`)
  }
})

test('every setting that limits clients has a row in docs/limits.md', () => {
  const bounding = Object.keys(settings).filter(name =>
    /_(?:MAX|PER_CLIENT|PER_SECOND|TIMEOUT_MS|BYTES|GROUPS)/.test(name),
  )
  assert.ok(bounding.length > 8)
  for (const name of bounding) assert.ok(page.includes(`\`${name}\``), `docs/limits.md has no row with ${name}`)
})
