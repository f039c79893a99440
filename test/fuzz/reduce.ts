import type { Case, Step } from './cases.ts'

/**
 * The smallest case that still fails. It leaves out parts, large ones first, while the case still fails, up to this
 * number of tries.
 */
export async function reduce(found: Case, fails: (candidate: Case) => Promise<boolean>, tries: number): Promise<Case> {
  let left = tries
  const stillFails = async (candidate: Case) => {
    if (left === 0) return 'nobody knows'
    left--
    return await fails(candidate)
  }
  if (found.kind === 'bytes') {
    const bytes = await shortest([...found.bytes], kept => stillFails({ ...found, bytes: Buffer.from(kept) }))
    return { ...found, bytes: Buffer.from(bytes) }
  }
  if (found.kind === 'request') {
    const headers = await shortest(found.headers, kept => stillFails({ ...found, headers: kept }))
    const bare = { ...found, headers }
    if (bare.body === undefined) return bare
    const body = await shortest([...bare.body], kept => stillFails({ ...bare, body: Buffer.from(kept) }))
    return { ...bare, body: Buffer.from(body) }
  }
  let steps = await shortest(found.steps, kept => stillFails({ ...found, steps: kept }))
  for (const [at, step] of steps.entries()) {
    if (step === 'reset' || !('text' in step)) continue
    const withText = (kept: readonly string[]): readonly Step[] => steps.with(at, { ...step, text: kept.join('') })
    steps = withText(await shortest([...step.text], kept => stillFails({ ...found, steps: withText(kept) })))
  }
  return { ...found, steps }
}

async function shortest<Item>(
  items: readonly Item[],
  fails: (kept: readonly Item[]) => Promise<boolean | 'nobody knows'>,
): Promise<readonly Item[]> {
  let kept = items
  for (let size = Math.ceil(items.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < kept.length; ) {
      const without = [...kept.slice(0, at), ...kept.slice(at + size)]
      const outcome = await fails(without)
      if (outcome === 'nobody knows') return kept
      if (outcome) kept = without
      else at += size
    }
  }
  return kept
}
