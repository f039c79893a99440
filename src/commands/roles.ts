import type { Role } from '../core/actor.ts'

export const roleComplaint = 'a role is member or admin'

export function isRole(value: unknown): value is Role {
  return value === 'member' || value === 'admin'
}
