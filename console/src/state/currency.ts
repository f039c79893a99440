import { settings } from '../settings.ts'
import { moneyIn } from './money.ts'

/** The money of this service. */
export const money = moneyIn(settings.currency)
