import { escapeHtml } from '../../src/http/pages/frame.ts'

/** Colours code by its grammar, as HTML. Code in an unknown language is only escaped. */
export function colour(code: string, language: string): string {
  return highlighter.getLanguage(language) === undefined
    ? escapeHtml(code)
    : highlighter.highlight(code, { language }).value
}

/** The part of highlight.js that is used here. Its own types would add those of browsers to all files. */
interface Highlighter {
  registerLanguage(name: string, grammar: unknown): void
  getLanguage(name: string): unknown
  highlight(code: string, options: { readonly language: string }): { readonly value: string }
}

const load = async (part: string) => (await import(`highlight.js/lib/${part}`)).default

const highlighter: Highlighter = await load('core')

/** The languages of the examples. Each has its short names, too, such as `sh`, `console` and `ts`. */
const languages = ['bash', 'shell', 'javascript', 'typescript', 'json', 'graphql', 'xml', 'css', 'yaml', 'sql']
for (const name of languages) highlighter.registerLanguage(name, await load(`languages/${name}`))
