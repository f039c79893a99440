// Starts GraphiQL in the browser, and signs in for it.

self.MonacoEnvironment = {
  globalAPI: false,
  getWorkerUrl(_module, label) {
    const { dataset } = document.querySelector('#root')
    return dataset[label] ?? dataset.editor
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

# These need a token. Sign in above, or write one into
# the headers below: { "Authorization": "Bearer <token>" }

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

YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
  title: 'Duet: GraphQL',
  defaultQuery: examples,
  subscriptionsProtocol: 'WS',
  // A browser cannot send headers with a WebSocket. The token goes into its first message instead.
  connectionParams: writtenHeaders,
  // A phone has no room for them, until they are wanted.
  defaultEditorToolsVisibility: matchMedia('(min-width: 701px)').matches,
  // A token should not stay in the browser.
  shouldPersistHeaders: false,
})

const form = document.querySelector('#sign-in')
const result = form.querySelector('output')

form.addEventListener('submit', async event => {
  event.preventDefault()
  result.textContent = 'Signing in…'
  result.textContent = await signIn(new FormData(form))
})

async function signIn(fields) {
  const body = JSON.stringify(Object.fromEntries(fields))
  try {
    const response = await fetch('tokens', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
    const { token, error } = await response.json()
    if (token === undefined) return error
    const { authorization: _, ...others } = writtenHeaders()
    headersPane().setValue(JSON.stringify({ ...others, Authorization: `Bearer ${token}` }, null, 2))
    form.elements.password.value = ''
    return `Signed in as ${fields.get('email')}`
  } catch {
    return 'The service did not answer'
  }
}
