import { type Role, roles } from '../core/actor.ts'

export const roleComplaint = 'the role must be member or admin'

export function isRole(value: unknown): value is Role {
  return roles.some(role => role === value)
}
