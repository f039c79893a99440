import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The GraphiQL page, for trying GraphQL in a browser. It is self-contained and loads nothing from elsewhere. */
export class GraphiqlPage {
  #made: Promise<Made> | undefined

  readonly show = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    // GraphiQL has nine megabytes of scripts, and few processes need it. So it is built at the first request.
    this.#made ??= make()
    const { text, compressed, tag, policy } = await this.#made
    reply.header('etag', tag).header('cache-control', 'no-cache').header('vary', 'Origin, Accept, Accept-Encoding')
    reply.header('content-security-policy', policy).header('referrer-policy', 'no-referrer')
    if (request.headers['if-none-match'] === tag) return reply.code(304).send()
    reply.type('text/html; charset=utf-8')
    if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(text)
    return reply.header('content-encoding', 'gzip').send(compressed)
  }
}

interface Made {
  readonly text: Buffer
  readonly compressed: Buffer
  readonly tag: string
  readonly policy: string
}

async function make(): Promise<Made> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql')
  const page = renderGraphiQL({
    title: 'Duet: GraphQL',
    endpoint: '/graphql',
    defaultQuery: examples,
    subscriptionsProtocol: 'WS',
  })
  // The page fills the window. A margin, or hidden parts of its editors, would only make it scroll.
  const text = Buffer.from(
    page.trimStart().replace('</head>', '<style>body { margin: 0; overflow: hidden }</style></head>'),
  )
  return {
    text,
    compressed: await promisify(gzip)(text),
    tag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`,
    policy: policyOf(page),
  }
}

// Only the page's own scripts may run. They create workers and styles themselves.
function policyOf(page: string): string {
  const scripts = [...page.matchAll(/<script>(.*?)<\/script>/gs)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src ${scripts.join(' ')}`,
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    "img-src 'self' data: https:",
    'font-src data:',
    "connect-src 'self' ws: wss:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const examples = `# Duet's GraphQL interface. Put the cursor into an
# operation and press Ctrl-Enter to run it. Ctrl-Space
# shows what can be selected, the book the whole schema.

query LatestPosts {
  posts(limit: 3) {
    id
    title
    likes
    author {
      name
    }
    comments {
      text
      author {
        name
      }
    }
  }
}

query OneUser($id: ID = "1") {
  user(id: $id) {
    name
    createdAt
    posts(limit: 2) {
      title
      publishedAt
    }
  }
}

mutation Like {
  likePost(id: "1") {
    title
    likes
  }
}

# Runs until you stop it. Create a post in another tab,
# and it comes in.
subscription NewPosts {
  postAdded {
    title
    author {
      name
    }
  }
}

# These need a token, as a header below:
#   { "Authorization": "Bearer <token>" }
# POST /tokens gives one; with the demo data for
#   {"email": "ada@example.com", "password": "demo-password"}

query Me {
  me {
    name
    email
  }
}

mutation Write($title: String = "Hello", $content: String = "A first post.") {
  createPost(title: $title, content: $content) {
    id
    publishedAt
    author {
      name
    }
  }
}
`
