/** The login of the first user in the demo data, who is an admin. The second user has the same password. */
export const demoLogin = Object.freeze({ email: 'ada@example.com', password: 'demo-password' })
