import { type Answer, Client } from '../client.ts'
import { skip } from './contenders.ts'
import type { Generator } from './generator.ts'
import type { Outcome } from './load-process.ts'
import type { Case, Contender, Pace, Result, Sample, Series, WarmUp } from './model.ts'
import { cpuOf } from './processes.ts'
import { counter, errorStart } from './requests.ts'
import { quotientsOf, uncertaintyOf } from './statistics.ts'

/**
 * Measures all cases, interleaved: each round visits every case, and in it every contender, so that what changes on the
 * machine in the meantime changes for all. The order of contenders turns from round to round. Before the first round
 * every contender is warmed up in every case, so that none is measured while its code is still being compiled.
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
  const answers = new Map<string, Expected>()
  for (const each of present) {
    for (const [name, expected] of await check(each)) answers.set(`${each.name} ${name}`, expected)
  }
  const samples = new Map<string, Sample[]>()
  const failed = new Set<string>()
  const visit = async (
    each: PresentCase,
    contender: Contender,
    work: (expected: Expected) => Promise<Sample | undefined>,
  ): Promise<void> => {
    const key = `${each.name} ${contender.name}`
    const expected = answers.get(key)
    if (failed.has(key) || expected === undefined) return
    try {
      const sample = await work(expected)
      if (sample !== undefined) samples.set(key, [...(samples.get(key) ?? []), sample])
    } catch (error) {
      failed.add(key)
      skip(`${contender.name} in the case ${each.name}`, error instanceof Error ? error.message : String(error))
    }
  }
  const seriesOf = ({ name, contenders }: PresentCase): readonly Series[] =>
    contenders
      .filter(contender => !failed.has(`${name} ${contender.name}`))
      .map(contender => ({ name: contender.name, samples: samples.get(`${name} ${contender.name}`) ?? [] }))

  for (const each of present) {
    for (const contender of each.contenders) {
      await visit(each, contender, expected => warmUp(generator, each, contender, expected, pace.warm))
    }
  }
  const { least, most } = pace.rounds
  for (let round = 0; round < most; round++) {
    for (const each of present) {
      const isOptional = round >= least
      if (isOptional && (performance.now() > pace.deadline || !isUncertain(seriesOf(each)))) continue
      for (const contender of turned(each.contenders, round)) {
        await visit(each, contender, expected => slice(generator, each, contender, expected, pace))
      }
    }
  }
  // Without the first contender there is nothing to compare with.
  const measured = present.filter(({ name, contenders: [base] }) => base && !failed.has(`${name} ${base.name}`))
  return measured.map(each => ({ name: each.name, title: each.title, note: each.note, series: seriesOf(each) }))
}

type PresentCase = Omit<Case, 'contenders'> & { readonly contenders: readonly Contender[] }

/** What the answers of a contender are to be like while it is measured. */
interface Expected {
  readonly status: number
  /** Whether the answers are errors of GraphQL. */
  readonly isError: boolean
}

/** The list from another start, another one in each round. */
export function turned<Each>(list: readonly Each[], round: number): readonly Each[] {
  const start = round % list.length
  return [...list.slice(start), ...list.slice(0, start)]
}

/** Whether more rounds would make a ratio of CPU noticeably surer. */
export function isUncertain([base, ...others]: readonly Series[]): boolean {
  const whole = ({ samples }: Series) => samples.map(({ cpu, databaseCpu }) => cpu + databaseCpu)
  return others.some(other => base && uncertaintyOf(quotientsOf(whole(other), whole(base))) > noticeable)
}

/** The standard error of a ratio beyond which a case gets more rounds. */
const noticeable = 0.015

async function warmUp(
  generator: Generator,
  each: PresentCase,
  contender: Contender,
  expected: Expected,
  { answers: least, mostCpuMs }: WarmUp,
): Promise<undefined> {
  await generator.connect(contender.server.port, each.connections)
  try {
    const end = performance.now() + mostWarmUpMs
    let [lowest, answered, spent, isFalling] = [Number.POSITIVE_INFINITY, 0, 0, true]
    const enough = each.warmedBy === undefined ? least : 0
    while ((answered < enough || isFalling) && spent < mostCpuMs * 1000 && performance.now() < end) {
      const before = contender.server.cpu()
      const { answers } = await load(generator, each, contender, expected, windowMs, leastAnswers)
      const used = contender.server.cpu() - before
      const cpu = used / answers
      spent += used
      isFalling = cpu < 0.97 * lowest
      lowest = Math.min(lowest, cpu)
      answered += answers
    }
  } finally {
    await generator.disconnect()
  }
}

const windowMs = 100
/** On a machine with other work a slice is longer, until there are so many answers. Fewer say little. */
const leastAnswers = 100
/** A server that waits, as for a slow disk, uses little CPU. */
const mostWarmUpMs = 20_000

async function slice(
  generator: Generator,
  each: PresentCase,
  contender: Contender,
  expected: Expected,
  { settleMs, sliceMs }: Pace,
): Promise<Sample> {
  const { server, database = () => [] } = contender
  await generator.connect(server.port, each.connections)
  try {
    await load(generator, each, contender, expected, settleMs)
    const requests = await each.requests(contender)
    const processes = database()
    const databaseBefore = processes.reduce((sum, pid) => sum + cpuOf(pid), 0)
    const before = server.cpu()
    const { answers, seconds, p50, p99, cpu } = await load(
      generator,
      each,
      contender,
      expected,
      sliceMs,
      leastAnswers,
      requests,
    )
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

/** Sends requests for so long. Fails if an answer is not as expected. */
async function load(
  generator: Generator,
  each: PresentCase,
  contender: Contender,
  { status, isError }: Expected,
  ms: number,
  least = 0,
  requests?: readonly string[],
): Promise<Outcome> {
  const list = requests ?? (await each.requests(contender))
  const outcome = await generator.run({ ms, least, requests: list, status, once: each.once ?? false })
  if (!isError && outcome.errors > 0) throw new Error(`${outcome.errors} answers were errors`)
  return outcome
}

/** Sends a few requests to each contender, and fails unless all answer alike. Returns how each answers. */
export async function check({
  name,
  requests,
  essence = same,
  contenders,
}: Pick<PresentCase, 'name' | 'requests' | 'essence' | 'contenders'>): Promise<Map<string, Expected>> {
  const answered = new Map<string, Expected>()
  let expected: readonly string[] | undefined
  for (const contender of contenders) {
    const list = await requests(contender)
    const asked = [list[0], list[1], list[list.length >> 1]].filter(request => request !== undefined)
    const answers: string[] = []
    using client = new Client(contender.server.port)
    for (const request of asked) {
      const { status, body } = await ask(client, request)
      answered.set(contender.name, { status, isError: body.startsWith(errorStart) })
      answers.push(JSON.stringify(essence(status, body)))
    }
    expected ??= answers
    const differs = answers.findIndex((answer, at) => answer !== expected?.[at])
    if (differs >= 0) {
      const [ours, theirs] = [expected[differs], answers[differs]].map(text => text?.slice(0, 600))
      throw new Error(`${name}: ${contender.name} answers differently\n${ours}\n${theirs}`)
    }
  }
  return answered
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
