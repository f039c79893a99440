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

/** Pages about how the service is made. Fewer readers look for them. */
const behindTheScenes = /\/(?:decisions|how-to|benchmarks|changelog|rules|architecture|contributing)/

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
      const together = words.length === 1 ? 0 : scoreIn(heading, phrase, 8) + (text.search(phrase) < 0 ? 0 : 8)
      const sum = scores.reduce((total, score) => total + score, together)
      const score = behindTheScenes.test(address) ? sum / 2 : sum
      return [{ page, heading, address: `${address}#${id}`, line: lineIn(text, phrase, any), score }]
    }),
  )
  return found.toSorted((a, b) => b.score - a.score).slice(0, most)
}

/** Finds words that begin with one of the given texts, in the singular too. The rest of the word is the last group. */
function beginningOf(texts: readonly string[]): RegExp {
  const escaped = texts.map(text => text.replace(/(?<=\w{3})s$/, '').replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join('|')})([\\p{L}\\p{N}]*)`, 'giu')
}

/** Whole words count twice, and what is there often counts up to three times. */
function scoreIn(text: string, pattern: RegExp, weight: number): number {
  const matches = [...text.matchAll(pattern)].slice(0, 3)
  return matches.reduce((sum, [, , rest = '']) => sum + (/^s?$/.test(rest) ? 2 : 1) * weight, 0)
}

/** A line around the whole phrase, or else around the first of the words. */
function lineIn(text: string, phrase: RegExp, word: RegExp): readonly string[] {
  const at = Math.max(text.search(phrase), 0) || Math.max(text.search(word), 0)
  const begin = at < lineLength / 3 ? 0 : text.lastIndexOf(' ', at - lineLength / 4) + 1
  const end = begin + lineLength
  const line = `${begin === 0 ? '' : '… '}${text.slice(begin, end)}${end < text.length ? ' …' : ''}`
  const marked = line.replaceAll(word, '\0$1\0$2')
  return marked.split('\0')
}
