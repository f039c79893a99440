// Starts GraphiQL in the browser, as the user who is signed in.
import { onNextUser, resumed, token } from '../header.js'

const root = document.querySelector('#content')

self.MonacoEnvironment = {
  globalAPI: false,
  getWorkerUrl(_module, label) {
    return root.dataset[label] ?? root.dataset.editor
  },
}

const examples = `# Put the cursor into an operation and press
# Ctrl-Enter to run it. Ctrl-Space shows what can
# be selected, the book the whole schema.

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

# These need a user: sign in above.

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

/** The text of the headers pane, which an editor of Monaco holds. */
function headersPane() {
  return globalThis.__MONACO?.editor.getModels().find(({ uri }) => uri.path.endsWith('request-headers.json'))
}

function writtenHeaders() {
  try {
    return Object(JSON.parse(headersPane()?.getValue() || '{}'))
  } catch {
    return {}
  }
}

/** The token of the session, unless the headers pane has another one. */
function sessionHeaders() {
  const isWritten = Object.keys(writtenHeaders()).some(name => name.toLowerCase() === 'authorization')
  return isWritten || !token() ? {} : { Authorization: `Bearer ${token()}` }
}

// The answers on the page, and an open socket, are those of the former user.
onNextUser(() => location.reload())

await resumed // so that the first request does not carry an expired token
YogaGraphiQL.renderYogaGraphiQL(root, {
  title: 'GraphiQL · Duet',
  defaultQuery: examples,
  additionalHeaders: sessionHeaders,
  subscriptionsProtocol: 'WS',
  // A browser cannot send headers with a WebSocket. The token goes into its first message instead.
  connectionParams: () => ({ ...sessionHeaders(), ...writtenHeaders() }),
  // A phone has no room for them, until they are wanted.
  defaultEditorToolsVisibility: matchMedia('(min-width: 701px)').matches,
  // A token that somebody wrote there should not stay in the browser.
  shouldPersistHeaders: false,
  forcedTheme: 'system', // as all pages
})
