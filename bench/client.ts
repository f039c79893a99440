import { Agent, type IncomingMessage, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly body: string
}

interface Sending {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A client of one server, over connections that it keeps; it may come from any address of the loopback network. */
export class Client implements Disposable {
  readonly #port: number
  readonly #agent: Agent
  readonly #localAddress: string
  /** Sent with every request, once there is one. */
  token: string | undefined

  constructor(port: number, localAddress = '127.0.0.1') {
    this.#port = port
    this.#agent = new Agent({ keepAlive: true })
    this.#localAddress = localAddress
  }

  /** A body that is no text is sent as JSON. */
  send(path: string, { method = 'GET', headers = {}, body }: Sending = {}): Promise<Answer> {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const all: Record<string, string | number> = { ...headers }
    if (text !== undefined) {
      if (all['Content-Type'] === undefined) all['content-type'] ??= 'application/json'
      all['content-length'] = Buffer.byteLength(text)
    }
    if (this.token !== undefined) all.authorization ??= `Bearer ${this.token}`
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const options = { port: this.#port, host: '127.0.0.1', agent: this.#agent, localAddress: this.#localAddress }
    request({ ...options, path, method, headers: all }, response => receive(response, resolve, reject))
      .on('error', reject)
      .end(text)
    return promise
  }

  graphql(query: string, variables?: Readonly<Record<string, unknown>>): Promise<Answer> {
    return this.send('/graphql', { method: 'POST', body: { query, variables } })
  }

  /** Gives the user a password and logs in. */
  async logIn(userId: number): Promise<void> {
    const password = 'a long password'
    await this.send(`/users/${userId}`, { method: 'PATCH', body: { password } })
    const { email } = JSON.parse((await this.send(`/users/${userId}`)).body) as { email: string }
    const { body } = await this.send('/tokens', { method: 'POST', body: { email, password } })
    this.token = (JSON.parse(body) as { token: string }).token
  }

  [Symbol.dispose](): void {
    this.#agent.destroy()
  }
}

function receive(response: IncomingMessage, resolve: (answer: Answer) => void, reject: (error: Error) => void): void {
  const chunks: Buffer[] = []
  response.on('data', (chunk: Buffer) => chunks.push(chunk))
  response.on('error', reject)
  response.on('end', () => {
    // Made only for those who read it: it would take CPU time from the server that is measured.
    const body = () => Buffer.concat(chunks).toString()
    resolve({
      status: response.statusCode ?? 0,
      get body() {
        return body()
      },
    })
  })
}
