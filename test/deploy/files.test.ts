import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { load } from 'js-yaml'
import { readConfig, settings } from '../../src/config.ts'
import { readContents } from '../../src/http/pages/guides.ts'

const root = join(import.meta.dirname, '..', '..')

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

interface Service {
  readonly image: string
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: object
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address: string }>>
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: object
}

const compose = load(read('deploy/compose.yaml')) as Compose
const duets = ['duet-1', 'duet-2'].map(name => compose.services[name] ?? assert.fail(`compose.yaml has no ${name}`))

/** The settings of Duet in each file. Lines of the example that are commented out count too. */
const environments = {
  'compose.yaml': { ...duets[0]?.environment, ...duets[1]?.environment },
  'duet.env.example': parseEnv(read('deploy/duet.env.example').replaceAll(/^#(?=[A-Z_]+=)/gm, '')),
  Dockerfile: parseEnv((/^ENV (.*)$/m.exec(read('deploy/Dockerfile'))?.[1] ?? '').replaceAll(' ', '\n')),
}

for (const [file, environment] of Object.entries(environments)) {
  test(`deploy/${file} sets only variables that Duet knows, to values that it accepts`, () => {
    assert.ok(Object.keys(environment).length > 0, 'no variable was found')
    const unknown = Object.keys(environment).filter(name => !(name in settings))
    assert.deepEqual(unknown, [])
    const filled = Object.entries(environment).map(([name, value]) => [name, value?.replaceAll(/\$\{[^}]*\}/g, '*')])
    readConfig(Object.fromEntries(filled))
  })
}

test('deploy/compose.yaml refers only to services and networks that it defines, and Duet trusts only its nginx', () => {
  for (const [name, { image, depends_on = {}, networks }] of Object.entries(compose.services)) {
    for (const other of Object.keys(depends_on)) assert.ok(other in compose.services, `${name} depends on ${other}`)
    const joined = Array.isArray(networks) ? networks : Object.keys(networks)
    for (const network of joined) assert.ok(network in compose.networks, `${name} joins ${network}`)
    assert.ok(image === 'duet' || /:\d+\.\d+/.test(image), `${image} is pinned to a version`)
  }
  const nginx = Object(compose.services.nginx?.networks).duet.ipv4_address
  for (const { environment } of duets) assert.equal(environment?.TRUST_PROXY, nginx)
})

test('deploy/nginx.conf and deploy/Caddyfile pass requests on to the instances of deploy/compose.yaml', () => {
  for (const file of ['deploy/nginx.conf', 'deploy/Caddyfile']) {
    const named = new Set(read(file).match(/\bduet-\d+(?=:4000\b)/g))
    assert.deepEqual([...named], ['duet-1', 'duet-2'], file)
  }
})

const copied = Array.from(read('deploy/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm), line => line[1] ?? '')
const patterns = [...new Set(copied.flatMap(line => line.split(' ')))]

test('proxies keep an unused connection for less time than an instance that stops still serves', () => {
  for (const [file, pattern] of [
    ['deploy/nginx.conf', /^ +keepalive_timeout (\d+)ms;$/m],
    ['deploy/Caddyfile', /^\t+keepalive (\d+)ms$/m],
  ] as const) {
    const [, kept] = pattern.exec(read(file)) ?? assert.fail(file)
    assert.ok(Number(kept) < Number(settings.DRAIN_MS.fallback), file)
  }
})

test('.dockerignore lets through what deploy/Dockerfile copies, and nothing else', () => {
  const [first, ...others] = read('.dockerignore')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
  assert.equal(first, '*')
  assert.deepEqual(others.sort(), patterns.map(pattern => `!${pattern}`).sort())
})

test('the image of deploy/Dockerfile is healthy while it lives, proxies ask whether it is ready, and its Node is that of everything else', () => {
  assert.match(read('deploy/Dockerfile'), /^HEALTHCHECK .*\n.*\/health\/live`/m)
  assert.match(read('deploy/Caddyfile'), /health_uri \/health\/ready/)
  assert.ok(read('deploy/Dockerfile').includes(`ARG BASE=node:${read('.node-version').trim()}-`))
})

test('the image of deploy/Dockerfile has every file that the documentation pages show', async () => {
  const { chapters } = await readContents()
  for (const { file } of chapters.flatMap(({ guides }) => guides)) {
    assert.ok(
      patterns.some(pattern => matchesGlob(file, pattern) || file.startsWith(`${pattern}/`)),
      `${file} is not in the image`,
    )
  }
})

test('every metric in the alerts and on the dashboard is in the table of the guide', () => {
  // `test/http/metrics.test.ts` holds that the guide lists them all.
  const known: readonly string[] = read('docs/operations.md').match(/\b(?:duet|nodejs|process)_\w+/g) ?? []
  const isKnown = (name: string) => known.includes(name) || known.includes(name.replace(/_(?:bucket|count)$/, ''))
  load(read('deploy/prometheus-alerts.yaml'))
  JSON.parse(read('deploy/grafana-dashboard.json'))
  for (const file of ['deploy/prometheus-alerts.yaml', 'deploy/grafana-dashboard.json']) {
    const named = new Set(read(file).match(/\b(?:duet|nodejs|process)_\w+/g))
    assert.ok(named.size > 10, file)
    assert.deepEqual(
      [...named].filter(name => !isKnown(name)),
      [],
      file,
    )
  }
})
