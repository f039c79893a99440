import { ts } from '@ts-morph/common'

/** The interface of TypeScript before version 7, which programs that write types still use. */
export default ts
