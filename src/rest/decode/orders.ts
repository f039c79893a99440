import { badInput, integer, nonBlankText } from '../../core/input.ts'
import { type OrderItem, orderBounds } from '../../core/orders/order.ts'
import { isObject } from '../../server/fields.ts'
import { fieldsOf } from './fields.ts'

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
