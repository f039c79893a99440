import { once } from '../files.ts'
import { escapeHtml } from './frame.ts'

/** The languages of the examples. Each has its short names, too, such as `sh`, `console` and `ts`. */
const languages = ['bash', 'shell', 'javascript', 'typescript', 'json', 'graphql', 'xml', 'css', 'yaml', 'sql']

/** Colours code by its grammar, as HTML. Code in an unknown language is only escaped. */
export type Colour = (code: string, language: string) => string

/** Only those who read the documentation pay for the highlighter. */
export const loadColours = once(async (): Promise<Colour> => {
  const load = async (part: string) => (await import(`highlight.js/lib/${part}`)).default
  const all: Highlighter = await load('core')
  await Promise.all(languages.map(async name => all.registerLanguage(name, await load(`languages/${name}`))))
  return (code, language) =>
    all.getLanguage(language) === undefined ? escapeHtml(code) : all.highlight(code, { language }).value
})

/** The part of highlight.js that is used here. Its own types would add those of browsers to all files. */
interface Highlighter {
  registerLanguage(name: string, grammar: unknown): void
  getLanguage(name: string): unknown
  highlight(code: string, options: { readonly language: string }): { readonly value: string }
}

/** A block of code. It can be reached by keyboard, so that it can be scrolled by keyboard. */
export function block(html: string): string {
  return `<pre tabindex="0"><code>${html}</code></pre>\n`
}
