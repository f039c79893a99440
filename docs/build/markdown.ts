import { posix } from 'node:path'
import { Marked, type Tokens } from 'marked'
import { escapeHtml } from '../../src/http/pages/frame.ts'
import { colour } from './code.ts'
import { exampleList } from './examples.ts'
import { block, table } from './html.ts'

/**
 * Renders a Markdown file of this project to HTML. `addressOf` gives the address of the file that a link names, or nothing
 * if that file is not served: then only the text of the link remains.
 */
export function renderMarkdown(text: string, file: string, addressOf: (file: string) => string | undefined) {
  const headings: { readonly id: string; readonly html: string }[] = [] // of the second level
  const ids = new Map<string, number>()
  const targetOf = (href: string) => {
    if (/^(?:https?:|#)/.test(href)) return href
    const [path = '', anchor] = href.split('#')
    const address = addressOf(posix.join(posix.dirname(file), path).replace(/\/$/, ''))
    return address === undefined || anchor === undefined ? address : `${address}#${anchor}`
  }
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: source }) {
        const id = uniqueId(source, ids)
        const inner = this.parser.parseInline(tokens)
        if (depth === 2) headings.push({ id, html: inner })
        const anchor = depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
        return `<h${depth} id="${id}">${inner}${anchor}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = targetOf(href)
        return target === undefined ? inner : `<a href="${escapeHtml(target)}">${inner}</a>`
      },
      image({ href, text: alternative }) {
        const target = targetOf(href)
        return target === undefined ? '' : `<img src="${escapeHtml(target)}" alt="${escapeHtml(alternative)}">`
      },
      code: ({ text: code, lang = '' }) => exampleList(code, lang) ?? block(colour(code, lang)),
      table({ header, rows }) {
        const cells = (row: readonly Tokens.TableCell[]) => row.map(({ tokens }) => this.parser.parseInline(tokens))
        return table(cells(header), rows.map(cells))
      },
    },
  })
  return { html: marked.parse(text, { async: false }), headings }
}

/** The id that code hosts give to a heading, so that links in the files work there and here. */
function uniqueId(heading: string, ids: Map<string, number>): string {
  const id = heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
  const earlier = ids.get(id) ?? 0
  ids.set(id, earlier + 1)
  return earlier === 0 ? id : `${id}-${earlier}`
}
