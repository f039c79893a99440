/** A page as the index has it. */
export type Page = readonly [
  address: string,
  title: string,
  sections: readonly (readonly [id: string, heading: string, text: string])[],
]

/** A section that has all words. */
export interface Found {
  readonly page: string
  readonly heading: string
  /** Relative to the root of the service. */
  readonly address: string
  /** A line of the text, in pieces. Those at odd places are what was searched for. */
  readonly line: readonly string[]
  readonly score: number
}

export const most = 20
const lineLength = 160

/** The sections that have all words of the query, or words that begin with them. The best are first. */
export function search(pages: readonly Page[], query: string): readonly Found[] {
  const words = query.trim().split(/\s+/)
  if (words[0] === '') return []
  const patterns = words.map(word => beginningOf([word]))
  const [phrase, any] = [beginningOf([words.join(' ')]), beginningOf(words)]
  const found = pages.flatMap(([address, page, sections]) =>
    sections.flatMap(([id, heading, text]) => {
      const scores = patterns.map(
        pattern => scoreIn(heading, pattern, 8) + scoreIn(text, pattern, 1) + scoreIn(page, pattern, 1),
      )
      if (scores.includes(0)) return []
      const together = words.length === 1 ? 0 : scoreIn(heading, phrase, 8) + scoreIn(text, phrase, 4)
      const score = scores.reduce((sum, each) => sum + each, together)
      return [{ page, heading, address: `${address}#${id}`, line: lineIn(text, phrase, any), score }]
    }),
  )
  return found.toSorted((a, b) => b.score - a.score).slice(0, most)
}

/** Finds words that begin with one of the given texts. The rest of the word is the last group. */
function beginningOf(texts: readonly string[]): RegExp {
  const escaped = texts.map(text => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join('|')})([\\p{L}\\p{N}]*)`, 'iu')
}

/** A whole word counts twice. */
function scoreIn(text: string, pattern: RegExp, weight: number): number {
  const match = pattern.exec(text)
  return match === null ? 0 : match[2] === '' ? 2 * weight : weight
}

/** Where the text has the whole phrase, or else any of the words. */
function lineIn(text: string, phrase: RegExp, pattern: RegExp): readonly string[] {
  const at = Math.max(0, phrase.test(text) ? text.search(phrase) : text.search(pattern))
  const begin = at < lineLength / 3 ? 0 : text.lastIndexOf(' ', at - lineLength / 4) + 1
  const line = `${begin === 0 ? '' : '… '}${text.slice(begin, begin + lineLength)}${begin + lineLength < text.length ? ' …' : ''}`
  const pieces: string[] = []
  let rest = line
  for (let match = pattern.exec(rest); match !== null; match = pattern.exec(rest)) {
    pieces.push(rest.slice(0, match.index), match[1] ?? '')
    rest = rest.slice(match.index + (match[1]?.length ?? 1))
  }
  return [...pieces, rest]
}
