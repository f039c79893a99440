import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { load, loadAll } from 'js-yaml'
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment'
import type { IJob } from 'kubernetes-models/batch/v1/Job'
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import type { IService } from 'kubernetes-models/v1/Service'
import { readConfig, settings } from '../../src/config.ts'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick } from '../support/form.ts'
import { ask } from '../support/http.ts'
import { serveDuet } from '../support/process.ts'

const root = join(import.meta.dirname, '..', '..')

const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Service {
  readonly image: string
  readonly environment?: Readonly<Record<string, string>>
  readonly depends_on?: object
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address: string }>>
}

type Compose = { readonly services: Readonly<Record<string, Service>>; readonly networks: object }

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
    for (const name of Object.keys(environment)) assert.ok(name in settings, name)
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

const copied = Array.from(read('deploy/Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm), line => line[1] ?? '')
const patterns = [...new Set(copied.flatMap(line => line.split(' ')))]

test('proxies pass requests on to the instances, and keep an unused connection for less time than one that stops still serves', () => {
  for (const [file, pattern] of [
    ['deploy/nginx.conf', /^ +keepalive_timeout (\d+)ms;$/m],
    ['deploy/Caddyfile', /^\t+keepalive (\d+)ms$/m],
  ] as const) {
    const named = new Set(read(file).match(/\bduet-\d+(?=:4000\b)/g))
    assert.deepEqual([...named], ['duet-1', 'duet-2'], file)
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

test('a service with only the files and packages of the image of deploy/Dockerfile shows all pages', {
  skip: notInQuick,
}, async () => {
  using image = temporaryFolder()
  for (const path of globSync(patterns, { cwd: root }))
    cpSync(join(root, path), join(image.path, path), { recursive: true })
  for (const name of Object.keys(JSON.parse(read('package.json')).dependencies)) {
    const link = join(image.path, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), link)
  }
  await using duet = serveDuet({}, { root: image.path })
  const { url } = await duet.address()
  const docs = ['docs', 'docs/api', 'docs/readme', 'docs/images/console.png', 'docs/search.json', 'docs/schema.graphql']
  for (const path of [...docs, 'openapi.json', 'client.js', 'console', 'graphql', 'pages.css'])
    assert.equal((await ask(`${url}/${path}`, { headers: { accept: 'text/html' } })).status, 200, path)
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
    for (const name of named) assert.ok(isKnown(name), `${file}: ${name}`)
  }
})

const manifestOf = (path: string) => JSON.parse(read(path)) as { version: string; scripts: Record<string, string> }
const workflows = globSync('.github/**/*.yml', { cwd: root })

test('workflows use actions by the commit of a named version, and files of this repository that exist', () => {
  const used = workflows.flatMap(file => {
    load(read(file))
    return Array.from(read(file).matchAll(/\buses: (.+)$/gm), ([, action = '']) => action)
  })
  assert.ok(used.length > 0)
  for (const action of used) {
    if (action.startsWith('./')) assert.ok(existsSync(join(root, action)), action)
    else assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  }
  const named = workflows.flatMap(file => read(file).match(/\b(?:deploy|\.ci|client)\/?[\w.]*/g) ?? [])
  for (const path of named) assert.ok(existsSync(join(root, path)), path)
})

test('the service, its client and the changelog have one version, for which the release has notes', () => {
  const { version } = manifestOf('package.json')
  assert.equal(manifestOf('client/package.json').version, version)
  const [, notes = ''] = read('CHANGELOG.md').split(/^## (?=\d)/m)
  assert.match(notes, new RegExp(`^${version.replaceAll('.', '\\.')} \\(\\d{4}-\\d\\d-\\d\\d\\)\n\n### What is new\n`))
})

test('every npm script that a document, a workflow or a test names exists', () => {
  const { scripts } = manifestOf('package.json')
  const documents = globSync(['*.md', 'docs/**/*.md', 'client/*.md', 'test/**/*.ts', 'deploy/**/*.*'], { cwd: root })
  for (const file of [...documents, ...workflows]) {
    for (const [, name = ''] of read(file).matchAll(/\bnpm run (?:-s )?([a-z][a-z:]*)/g))
      assert.ok(name in scripts, `${file} names npm run ${name}`)
  }
})

const manifests = globSync('deploy/kubernetes/*.yaml', { cwd: root })
  .toSorted()
  .flatMap(file => loadAll(read(file)) as { apiVersion: string; kind: string }[])
const [deployment, service, budget, job] = manifests as [IDeployment, IService, IPodDisruptionBudget, IJob]

/** The module of `kubernetes-models`, which is generated from the OpenAPI description of Kubernetes. */
const moduleOf = ({ apiVersion, kind }: { apiVersion: string; kind: string }) =>
  `kubernetes-models/${apiVersion}/${kind}`

test('the values of every manifest are valid by the schema of the Kubernetes API', async () => {
  for (const manifest of manifests) {
    const models = await import(moduleOf(manifest))
    new models[manifest.kind](manifest).validate()
  }
})

test('no manifest has a field that the Kubernetes API does not know', { skip: notInQuick }, () => {
  using folder = temporaryFolder()
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  const lines = manifests.map(
    (manifest, at) =>
      `import type { I${manifest.kind} } from '${moduleOf(manifest)}'\nexport const a${at}: I${manifest.kind} = ${JSON.stringify(manifest)}\n`,
  )
  writeFileSync(join(folder.path, 'manifests.mts'), lines.join(''))
  const options = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', '']
  const inFolder = { cwd: folder.path, encoding: 'utf8' } as const
  const checked = spawnSync('node_modules/.bin/tsc', [...options, 'manifests.mts'], inFolder)
  assert.deepEqual([checked.status, checked.stdout], [0, ''])
})

test('the manifests fit each other, the service and the guide', () => {
  const pod = deployment.spec?.template
  assert.deepEqual(deployment.spec?.selector.matchLabels, pod?.metadata?.labels)
  assert.deepEqual(service.spec?.selector, pod?.metadata?.labels)
  assert.deepEqual(budget.spec?.selector?.matchLabels, pod?.metadata?.labels)
  const { labels } = job.spec?.template.metadata ?? {}
  assert.notDeepEqual(labels, pod?.metadata?.labels, 'the Service must not lead to the Job')
  const [container] = pod?.spec?.containers ?? []
  assert.deepEqual(container?.livenessProbe?.httpGet?.path, '/health/live')
  assert.deepEqual(container?.readinessProbe?.httpGet?.path, '/health/ready')
  assert.equal(container?.image, job.spec?.template.spec?.containers[0]?.image)
  assert.ok(container?.image?.endsWith(`:${manifestOf('package.json').version}`))

  const own = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]))
  for (const name of Object.keys(own)) assert.ok(name in settings || name.startsWith('NODE_'), name)
  readConfig(own)
  const made = Array.from(
    read('docs/operations.md').matchAll(/kubectl create secret generic (\S+)/g),
    ([, name]) => name,
  )
  const used = read('deploy/kubernetes/duet.yaml').matchAll(/secret(?:Ref: { n|N)ame: ([\w-]+)/g)
  assert.deepEqual(new Set(Array.from(used, ([, name]) => name)), new Set(made))
})
