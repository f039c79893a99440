/** A document, and the values of its variables. */
export interface Operation {
    readonly text: string;
    readonly variables: Readonly<Record<string, unknown>>;
}
/** The operation that a selection describes. Its text consists of names of the schema; all values are variables. */
export declare function operation(root: 'Query' | 'Mutation' | 'Subscription', selection: object): Operation;
