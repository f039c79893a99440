import type { Duet } from './connect.ts';
/**
 * A GraphQL document: its text, or an object whose `toString` returns it, as GraphQL Code Generator writes with
 * `documentMode: 'string'`. Such an object also has the types of the result and the variables.
 */
export type GraphDocument<Data = unknown, Variables = Record<string, unknown>> = string | {
    toString(): string;
    readonly __apiType?: (variables: Variables) => Data;
};
/** Variables may be omitted if none is required. */
export type WithVariables<Variables, Options> = Partial<Variables> extends Variables ? [variables?: Variables | undefined, options?: Options] : [variables: Variables, options?: Options];
type Run = <Data = unknown, Variables = Record<string, unknown>>(document: GraphDocument<Data, Variables>, ...rest: WithVariables<Variables, {
    readonly signal?: AbortSignal;
}>) => Promise<Data>;
export interface GraphQL {
    readonly query: Run;
    readonly mutate: Run;
}
export declare function graphql(duet: Duet): GraphQL;
/** The text of a document. Document objects of other tools contain it only if they keep their source. */
export declare function textOf(document: object | string): string;
export {};
