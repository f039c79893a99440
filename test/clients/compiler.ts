import { ts } from '@ts-morph/common'

/** The compiler interface of TypeScript before version 7, which type generators still use. */
export default ts
