import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../test/support/ports.ts'

/** The reason why nginx cannot run here, if there is one. */
export function nginxMissing(): string | undefined {
  if (program() === undefined) return 'nginx is not installed'
  return isInstalled('openssl', 'version') ? undefined : 'openssl is not installed'
}

/** On Debian nginx is in a folder that is not on the PATH of ordinary users. */
function program(): string | undefined {
  return ['nginx', '/usr/sbin/nginx'].find(name => isInstalled(name, '-v'))
}

export function isInstalled(name: string, flag: string): boolean {
  try {
    execFileSync(name, [flag], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** nginx with `deploy/nginx.conf` and its own certificate, on a free port of the loopback interface. */
export class Nginx implements AsyncDisposable {
  readonly url: string
  /** Clients trust this certificate directly. */
  readonly certificate: string
  readonly #process: ChildProcess

  /** `folder` is only for the files of nginx, whose user must be able to read it. */
  static async start(folder: string, instances: readonly [number, number]): Promise<Nginx> {
    const [port, plainPort] = [await freePort(), await freePort()]
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, adapted(folder, instances, port, plainPort))
    const certificate = makeCertificate(folder)
    const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', file, '-g', 'daemon off;']
    const child = spawn(program() ?? 'nginx', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    const nginx = new Nginx(child, port, certificate)
    for (let tries = 0; !(await listens(port)); tries++) {
      if (tries > 400 || child.exitCode !== null) {
        await nginx[Symbol.asyncDispose]()
        throw new Error('nginx does not start')
      }
      await delay(25)
    }
    return nginx
  }

  private constructor(child: ChildProcess, port: number, certificate: string) {
    this.#process = child
    this.url = `https://127.0.0.1:${port}`
    this.certificate = certificate
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill('SIGTERM')
    await once(this.#process, 'exit')
  }
}

/** The shipped configuration, with the addresses and files of this machine. */
function adapted(folder: string, instances: readonly [number, number], port: number, plainPort: number): string {
  let text = readFileSync(join(import.meta.dirname, 'nginx.conf'), 'utf8')
  const replace = (from: string, to: string) => {
    if (!text.includes(from)) throw new Error(`deploy/nginx.conf has no "${from}" any more`)
    text = text.replaceAll(from, to)
  }
  replace('/run/nginx.pid', join(folder, 'nginx.pid'))
  replace('/var/log/nginx/error.log', join(folder, 'error.log'))
  replace('worker_processes auto', 'worker_processes 1')
  replace('worker_rlimit_nofile 65536;', '') // ordinary users may not raise this limit
  replace('worker_connections 16384', 'worker_connections 512')
  replace('/var/log/nginx/access.log duet;', `${join(folder, 'access.log')} duet; ${temporaryPaths(folder)}`)
  for (const [index, instance] of instances.entries()) replace(`duet-${index + 1}:4000`, `127.0.0.1:${instance}`)
  replace('listen 80;', `listen 127.0.0.1:${plainPort};`)
  replace('listen [::]:80;', '')
  replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
  replace('listen [::]:443 ssl http2;', '')
  replace('/etc/nginx/tls/', `${folder}/`)
  return text
}

function temporaryPaths(folder: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return kinds.map(kind => `${kind}_temp_path ${join(folder, kind)};`).join(' ')
}

/** Signed by itself. Writes it and its key into the folder. */
export function makeCertificate(folder: string): string {
  const [key, certificate] = [join(folder, 'privkey.pem'), join(folder, 'fullchain.pem')]
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  const files = ['-keyout', key, '-out', certificate]
  const kind = ['-x509', '-nodes', '-days', '2', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  execFileSync('openssl', ['req', ...kind, ...names, ...files], { stdio: 'ignore' })
  return readFileSync(certificate, 'utf8')
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
