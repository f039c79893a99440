import type { Duet } from './connect.ts'

/**
 * A GraphQL document: its text, or an object that turns into it, as GraphQL Code Generator writes with
 * `documentMode: 'string'`. Such an object also has the types of the result and the variables.
 */
export type GraphDocument<Data = unknown, Variables = Record<string, unknown>> =
  | string
  | { toString(): string; readonly __apiType?: (variables: Variables) => Data }

export interface GraphQL {
  query<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    variables?: Variables,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Data>
  mutate<Data = unknown, Variables = Record<string, unknown>>(
    document: GraphDocument<Data, Variables>,
    variables?: Variables,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Data>
}

export function graphql(_duet: Duet): GraphQL {
  throw new Error('Not written yet')
}
