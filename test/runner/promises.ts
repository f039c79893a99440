import asyncHooks from 'node:async_hooks'

// The test runner follows every promise, only to know which test has left one behind that fails. That makes a promise
// ten times as expensive, and the servers under test use very many. Without it, such a failure still fails the run.
// This module must be loaded before the runner, which takes `createHook` from here.
const { createHook } = asyncHooks
asyncHooks.createHook = callbacks => createHook({ ...callbacks, trackPromises: false })
