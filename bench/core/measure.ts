import { type Answer, Client } from '../client.ts'
import { skip } from './contenders.ts'
import type { Generator } from './generator.ts'
import type { Case, Contender, Pace, Result, Sample, WarmUp } from './model.ts'
import { cpuOf } from './processes.ts'
import { counter } from './requests.ts'

/**
 * Measures all cases, interleaved: each round visits every case, and in it every contender, so that what changes on the
 * machine in the meantime changes for all. The order of contenders turns from round to round.
 */
export async function measure(
  generator: Generator,
  cases: readonly Case[],
  contenders: ReadonlyMap<string, Contender>,
  pace: Pace,
): Promise<readonly Result[]> {
  const present = cases.map(each => ({
    ...each,
    contenders: each.contenders.flatMap(name => contenders.get(name) ?? []),
  }))
  const statuses = new Map<string, number>()
  for (const each of present) {
    for (const [name, status] of await check(each)) statuses.set(`${each.name} ${name}`, status)
  }
  const samples = new Map<string, Sample[]>()
  const failed = new Set<string>()
  for (let round = 0; round < pace.rounds && (round === 0 || performance.now() < pace.deadline); round++) {
    for (const each of present) {
      const turned = [...each.contenders.slice(round % each.contenders.length), ...each.contenders].slice(
        0,
        each.contenders.length,
      )
      for (const contender of turned) {
        const key = `${each.name} ${contender.name}`
        const warmUp = round === 0 ? pace.warm : pace.settle
        if (failed.has(key)) continue
        try {
          const sample = await slice(generator, each, contender, statuses.get(key) ?? 0, warmUp, pace.sliceMs)
          samples.set(key, [...(samples.get(key) ?? []), sample])
        } catch (error) {
          failed.add(key)
          skip(`${contender.name} in the case ${each.name}`, error instanceof Error ? error.message : String(error))
        }
      }
    }
  }
  // Without the first contender there is nothing to compare with.
  const measured = present.filter(({ name, contenders: [base] }) => base && !failed.has(`${name} ${base.name}`))
  return measured.map(({ name, title, note, contenders }) => ({
    name,
    title,
    note,
    series: contenders
      .filter(contender => !failed.has(`${name} ${contender.name}`))
      .map(contender => ({ name: contender.name, samples: samples.get(`${name} ${contender.name}`) ?? [] })),
  }))
}

type PresentCase = Omit<Case, 'contenders'> & { readonly contenders: readonly Contender[] }

async function slice(
  generator: Generator,
  each: PresentCase,
  contender: Contender,
  status: number,
  warmUp: WarmUp,
  sliceMs: number,
): Promise<Sample> {
  const { server, database = () => [] } = contender
  const once = each.once ?? false
  await generator.connect(server.port, each.connections)
  try {
    const until = performance.now() + warmUp.mostMs
    let warmed = 0
    do {
      const run = { ms: warmUp.ms, requests: await each.requests(contender), status, once }
      warmed += (await generator.run(run)).answers
    } while (warmed < warmUp.answers && performance.now() < until)
    const requests = await each.requests(contender)
    const processes = database()
    const databaseBefore = processes.reduce((sum, pid) => sum + cpuOf(pid), 0)
    const before = server.cpu()
    const { answers, seconds, p50, p99, cpu } = await generator.run({ ms: sliceMs, requests, status, once })
    const spent = server.cpu() - before
    const databaseSpent = processes.reduce((sum, pid) => sum + cpuOf(pid), 0) - databaseBefore
    return {
      perSecond: answers / seconds,
      p50,
      p99,
      cpu: spent / answers,
      databaseCpu: databaseSpent / answers,
      memory: server.memory(),
      loadShare: cpu / 1e6 / seconds,
    }
  } finally {
    await generator.disconnect()
  }
}

/** Sends a few requests to each contender, and fails unless all answer alike. Returns the status that each answers with. */
export async function check({
  name,
  requests,
  essence = same,
  contenders,
}: Pick<PresentCase, 'name' | 'requests' | 'essence' | 'contenders'>): Promise<Map<string, number>> {
  const statuses = new Map<string, number>()
  let expected: readonly string[] | undefined
  for (const contender of contenders) {
    const list = await requests(contender)
    const asked = [list[0], list[1], list[list.length >> 1]].filter(request => request !== undefined)
    const answers: string[] = []
    using client = new Client(contender.server.port)
    for (const request of asked) {
      const { status, body } = await ask(client, request)
      statuses.set(contender.name, status)
      answers.push(JSON.stringify(essence(status, body)))
    }
    expected ??= answers
    const differs = answers.findIndex((answer, at) => answer !== expected?.[at])
    if (differs >= 0) {
      const [ours, theirs] = [expected[differs], answers[differs]].map(text => text?.slice(0, 600))
      throw new Error(`${name}: ${contender.name} answers differently\n${ours}\n${theirs}`)
    }
  }
  return statuses
}

function same(status: number, body: string): unknown {
  return { status, body: JSON.parse(body) }
}

/** Sends a request as the load process would. */
async function ask(client: Client, request: string): Promise<Answer> {
  const filled = request.replaceAll(counter, () => String(++unique))
  const end = filled.indexOf('\r\n\r\n')
  const [line = '', ...lines] = filled.slice(0, end).split('\r\n')
  const [method = 'GET', path = '/'] = line.split(' ')
  const headers = Object.fromEntries(lines.map(text => text.split(': ') as [string, string]))
  const body = filled.slice(end + 4)
  return client.send(path, { method, headers, ...(body !== '' && { body }) })
}

let unique = 1_000_000_000
