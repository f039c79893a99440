import { badInput, integer, nonBlankText } from '../../core/input.ts'
import { type OrderItem, type OrderListRequest, orderBounds, orderStatuses } from '../../core/orders/order.ts'
import { type Fields, isObject } from '../../server/fields.ts'
import { fieldsOf } from './fields.ts'
import { decodePage } from './page.ts'

/** Reads the page and the filter from the query string. */
export function decodeOrderList(query: Fields): OrderListRequest {
  const page = decodePage(query)
  if (query.status === undefined) return page
  const status = orderStatuses.find(each => each === query.status)
  if (status === undefined) throw badInput(`status must be one of ${orderStatuses.join(', ')}`)
  return { ...page, status }
}

export function decodeItems(body: unknown): readonly OrderItem[] {
  const { items } = fieldsOf(body)
  if (!Array.isArray(items) || items.length < 1 || items.length > orderBounds.items) {
    throw badInput(`items must be a list of 1 to ${orderBounds.items} items`)
  }
  return items.map((item: unknown, index) => itemOf(`items[${index}]`, item))
}

function itemOf(place: string, item: unknown): OrderItem {
  if (!isObject(item)) throw badInput(`${place} must be an object`)
  return {
    name: nonBlankText(`${place}.name`, item.name, orderBounds.name),
    quantity: integer(`${place}.quantity`, item.quantity, 1, orderBounds.quantity),
    price: integer(`${place}.price`, item.price, 0, orderBounds.price),
  }
}
