import * as argon2 from '@node-rs/argon2'
import { Argon2Passwords, hashing } from '../../src/security/passwords.ts'

const cheap = { memoryCost: 8, timeCost: 1, parallelism: 1 }

/** Real password hashing at a thousandth of the cost, because most tests log in and few are about passwords. */
export function cheapPasswords(): Argon2Passwords {
  return new Argon2Passwords(hashing, {
    hash: password => argon2.hash(password, cheap),
    verify: (hash, password) => argon2.verify(hash, password),
  })
}
