/** How each contender is set up, and the place in its documentation that recommends it. */
export const setups: readonly (readonly [name: string, how: string, place: string])[] = [
  [
    'Duet',
    'as `duet serve` starts it, metrics, depth and cost limits on; `LOG_LEVEL=warn`; rate limit, limits of connections and of time in the database off, because the others have none; one serving thread',
    '[operations.md](operations.md)',
  ],
  [
    'Apollo Server 5',
    'on Express 5 by `expressMiddleware`, DataLoader made anew in the context of each operation, subscriptions by `graphql-ws` and `PubSub`, depth limit by GraphQL Armor; its document store is on by default. Its plugin of cache control is off, because no field has a cache policy. Without `cors`, because no request has an Origin',
    '<https://www.apollographql.com/docs/apollo-server/api/express-middleware>; [`/data/fetching-data`](https://www.apollographql.com/docs/apollo-server/data/fetching-data) (new loaders for each operation); [`/data/subscriptions`](https://www.apollographql.com/docs/apollo-server/data/subscriptions) (graphql-ws); [`/api/plugin/cache-control`](https://www.apollographql.com/docs/apollo-server/api/plugin/cache-control) (faster without it if it is not used)',
  ],
  [
    'graphql-yoga 5',
    'on `node:http`, DataLoader in the context, its own PubSub, `graphql-ws` with `getEnveloped`, depth limit by GraphQL Armor; its caches of parsed and validated documents are on by default. Its page of plugins shows graphql-jit as an example, and no page recommends it, so it is not used; with it the nested case took about half of the CPU. Without its cache of responses, because no server here keeps answers, and without µWebSockets.js, which is not on npm',
    '<https://the-guild.dev/graphql/yoga-server/docs/prepare-for-production>, [`/features/parsing-and-validation-caching`](https://the-guild.dev/graphql/yoga-server/docs/features/parsing-and-validation-caching), [`/features/subscriptions`](https://the-guild.dev/graphql/yoga-server/docs/features/subscriptions), [`/features/envelop-plugins`](https://the-guild.dev/graphql/yoga-server/docs/features/envelop-plugins)',
  ],
  [
    'Mercurius 16',
    'on Fastify, `jit: 1`, relations by its loaders with their cache, which is on by default (without it the nested case takes it twice the CPU), `queryDepth`, its own subscriptions over `graphql-transport-ws`',
    'in its repository: [`docs/api/options.md`](https://github.com/mercurius-js/mercurius/blob/master/docs/api/options.md) (`jit`, `queryDepth`), [`docs/loaders.md`](https://github.com/mercurius-js/mercurius/blob/master/docs/loaders.md), [`docs/subscriptions.md`](https://github.com/mercurius-js/mercurius/blob/master/docs/subscriptions.md)',
  ],
  [
    'PostGraphile 5',
    'as a library on `node:http`, Amber preset, `GRAPHILE_ENV=production`, ten connections as Duet has, a function as custom mutation; lists by cursors; tables vacuumed and analysed',
    '<https://postgraphile.org/postgraphile/5/usage-library/>, [`/5/config`](https://postgraphile.org/postgraphile/5/config/) (Amber), [`/5/performance`](https://postgraphile.org/postgraphile/5/performance) (indexes, `VACUUM`), [`/5/production`](https://postgraphile.org/postgraphile/5/production)',
  ],
  [
    'Express 5',
    '`NODE_ENV=production`, `express.json()`, ETags by `res.json` (on by default, so in all cases; 2 to 3 µs of each answer), tokens by jose. Without compression, because no request accepts one',
    '<https://expressjs.com/en/advanced/best-practice-performance.html>',
  ],
  [
    'Fastify 5',
    'a schema for every body and answer, `@fastify/jwt` with its cache, which knows tokens by their text as Duet’s does, `@fastify/etag` in the case of 304 only',
    '<https://fastify.dev/docs/latest/Guides/Recommendations/> (causes of slowness), [`/Reference/Validation-and-Serialization`](https://fastify.dev/docs/latest/Reference/Validation-and-Serialization/); the README of [`fast-jwt`](https://github.com/nearform/fast-jwt#caching) (`cache`, `cacheKeyBuilder`)',
  ],
  [
    'Hono 4',
    'the preset `hono` on `@hono/node-server`, `hono/jwt`, `hono/etag` in the case of 304 only',
    '<https://hono.dev/docs/getting-started/nodejs>, [`/api/presets`](https://hono.dev/docs/api/presets); the README of [`@hono/node-server`](https://github.com/honojs/node-server)',
  ],
  [
    'Go',
    '`net/http`, graph-gophers/graphql-go with `MaxDepth` and batched reads per list, mattn/go-sqlite3 with several readers and one writer; versions of Debian, which are older than the newest (in Debian 12: Go 1.19, graphql-go 1.5.0, go-sqlite3 1.14.16, SQLite 3.40). It may use all cores',
    '<https://github.com/graph-gophers/graphql-go#schema-options>, <https://github.com/mattn/go-sqlite3#faq>',
  ],
  [
    'bare `node:http`',
    'a ceiling, not a service: reads the request, runs the same statement as Duet, writes its text. No routing, no checks, no limits',
    '`bench/peers/bare.mjs`',
  ],
  [
    'bare loop',
    'a ceiling for events: writes a frame to each socket, reads nothing from a database',
    '`bench/peers/bare-sockets.mjs`',
  ],
]

export const duetDoesMore = [
  'counts every request in its metrics and gives it an id, which it also returns',
  'checks size, type, encoding, headers and values of every request, and refuses ambiguous ones',
  'limits the cost of operations besides their depth, and the size of every answer',
  'checks access for every operation, and with a token that its user still has the rights it names',
  'writes every event into a log in the transaction of the change, so that a lost connection or a crash loses none',
  'adds `Link` to lists',
]

export const notShown = [
  'What a service does besides: most have more work in their own rules than any of these servers has here.',
  'Networks: clients and servers share one machine, so latencies are those of the loopback interface under full load. Requests per second are also bounded by the load process and by what else the machine does; CPU per request is the steadier figure.',
  'Resolvers that call other services. Duet reads one database and makes one statement of each operation; that is why it is fast, and why it is no gateway.',
  'Fan-out below the cost of a write: each socket gets its own frame, and the kernel’s part of a write is most of what the bare loop takes. The notes of those cases give it.',
  'Several processes: all but Go run in one process with one serving thread.',
  'Other schemas: the operations are of Duet’s own schema. PostGraphile has its own, and its answers were compared after their lists were unwrapped.',
]
