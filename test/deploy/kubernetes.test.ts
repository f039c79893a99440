import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadAll } from 'js-yaml'
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment'
import type { IJob } from 'kubernetes-models/batch/v1/Job'
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import type { IService } from 'kubernetes-models/v1/Service'
import { readConfig, settings } from '../../src/config.ts'
import { temporaryFolder } from '../support/folder.ts'
import { notInQuick } from '../support/form.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
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
    const wrong = { ...manifest, spec: { template: 'wrong', ports: 'wrong', selector: 'wrong' } }
    assert.throws(() => new models[manifest.kind](wrong).validate())
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
  const { version } = JSON.parse(read('package.json'))
  assert.ok(container?.image?.endsWith(`:${version}`))

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
