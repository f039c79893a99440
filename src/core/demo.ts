/** The login of the demo data's first user, an admin. The second has the same password. */
export const demoLogin = Object.freeze({ email: 'ada@example.com', password: 'demo-password' })
