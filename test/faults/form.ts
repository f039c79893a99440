/** The short form runs with all other tests, the long one with `npm run test:faults`. */
export function inForm<Value>(short: Value, long: Value): Value {
  return process.env.DUET_TEST_FULL ? long : short
}
