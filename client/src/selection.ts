import type { Arguments, PrivateField } from './schema.ts'

/**
 * The fields of an object to read. A plain field is `true`. An object is a selection of its own, or `true` for all its
 * plain fields. `$` has the arguments of a field, and `'*': true` adds all plain fields to the named ones. The e-mail of
 * users is always named: not everybody may read it.
 */
export type Selection<T, A = unknown> = Given<A> & { readonly '*'?: true } & {
  readonly [F in keyof T as F extends '__typename' ? never : F]?: Field<Item<T[F]>, ArgumentsOf<T, F>>
}

type Field<I, A> =
  | (Partial<A> extends A ? true : never)
  | (I extends object ? Selection<I, A> : keyof A extends never ? never : Given<A>)

type Given<A> = keyof A extends never ? unknown : Partial<A> extends A ? { readonly $?: A } : { readonly $: A }

/** What a selection of an object gives. */
export type Selected<V, S> = V extends readonly (infer I)[]
  ? Selected<I, S>[]
  : V extends object
    ? { [F in keyof V as F extends Chosen<V, S> ? F : never]: Selected<V[F], F extends keyof S ? S[F] : true> }
    : V

type Chosen<T, S> = S extends true
  ? Plain<T>
  : Exclude<keyof S, '$'> extends never
    ? Plain<T>
    : Exclude<keyof S, '$' | '*'> | ('*' extends keyof S ? Plain<T> : never)

/** The fields that are no objects, and that everybody may read. */
type Plain<T> = Exclude<{ [F in FieldOf<T>]: Item<T[F]> extends object ? never : F }[FieldOf<T>], PrivateField>

/** The compiler accepts unknown properties in a selection that it infers. This names them, so that it refuses them. */
export type Known<T, S> = S extends Checked<T, S, unknown> ? S : Checked<T, S, unknown>

type Checked<T, S, A> = {
  [K in keyof S]: K extends '*'
    ? S[K]
    : K extends '$'
      ? { [P in keyof S[K]]: P extends keyof A ? S[K][P] : `There is no argument ${P & string}` }
      : K extends FieldOf<T>
        ? S[K] extends object
          ? Checked<Item<T[K]>, S[K], ArgumentsOf<T, K>>
          : S[K]
        : `${NameOf<T>} has no field ${K & string}`
}

type FieldOf<T> = Exclude<keyof T, '__typename'>
type Item<V> = NonNullable<V> extends readonly (infer I)[] ? NonNullable<I> : NonNullable<V>
type NameOf<T> = T extends { __typename?: infer N extends string } ? N : 'It'
type ArgumentsOf<T, F> =
  NameOf<T> extends infer N extends keyof Arguments
    ? F extends keyof Arguments[N]
      ? Arguments[N][F]
      : unknown
    : unknown
