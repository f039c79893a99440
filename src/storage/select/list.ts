import type { PageRequest } from '../../core/page.ts'
import type { Statement, Value } from '../sql.ts'
import type { Dialect } from './dialect.ts'
import { type List, orderBy, type PageStart } from './page.ts'

interface Listed extends Pick<List, 'table' | 'columns'> {
  /** The select list. The rows of the page are called `listed`. */
  readonly shown: string
  /** Parameters begin at `$3`. */
  readonly equal?: List['equal']
  readonly from?: (listed: string) => string
}

/**
 * The statements for the pages of a list, by id, which begin after so many rows or after an id, in either order. They read
 * one row more than the limit, which tells whether there are more. `values` are those of the list's own parameters.
 */
export function pagesOf(
  dialect: Pick<Dialect, 'page'>,
  { shown, from = listed => listed, equal = [], ...rest }: Listed,
) {
  const textOf = (order: List['order'], start: PageStart) => {
    const { rows, sorting } = dialect.page({ ...rest, equal, published: [], order, limit: '$1', ...start })
    return `select ${shown} from ${from(`${rows} as listed`)} order by ${orderBy(sorting, order, 'listed')}`
  }
  const inOrder = (order: List['order']) => ({
    fromOffset: textOf(order, { offset: '$2' }),
    afterId: textOf(order, { after: '$2' }),
  })
  const [ascending, descending] = [inOrder('asc'), inOrder('desc')]
  return ({ limit, offset, after, sort }: PageRequest, ...values: readonly Value[]): Statement => ({
    text: (sort === '-id' ? descending : ascending)[after === undefined ? 'fromOffset' : 'afterId'],
    values: [limit + 1, after ?? offset, ...values],
  })
}
