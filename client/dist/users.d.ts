import type { Duet } from './connect.ts';
import { type PageOptions, type Pages } from './pages.ts';
import { type Versioned } from './versions.ts';
export type Role = 'admin' | 'member';
export interface User extends Versioned {
    readonly id: number;
    readonly name: string;
    readonly email: string;
    readonly age?: number;
    readonly avatar?: string;
}
export interface UserInput {
    readonly name: string;
    readonly email: string;
    readonly age?: number | null;
    readonly avatar?: string | null;
    readonly password?: string | null;
}
/** Absent fields stay unchanged; `null` removes a value. */
export interface UserChanges {
    readonly name?: string;
    readonly email?: string;
    readonly age?: number | null;
    readonly avatar?: string | null;
    readonly password?: string;
}
/**
 * Writes take a user or its id. A user from `get` or `me` has an `ETag`: the write succeeds only if nobody has changed
 * the user since then. Otherwise it fails with `conflict` and `status` 412. A write with an id is unconditional.
 */
export interface Users {
    /** `q`: the beginning of names and e-mails. Not together with `email`. */
    list(options?: PageOptions & {
        readonly email?: string;
        readonly q?: string;
    }): Pages<User>;
    me(options?: {
        readonly signal?: AbortSignal;
    }): Promise<User>;
    get(id: number, options?: {
        readonly signal?: AbortSignal;
    }): Promise<User>;
    create(input: UserInput): Promise<User>;
    /** Replaces the user, or creates it with this id. With `onlyNew` it never replaces a user. */
    replace(user: User | number, input: UserInput, options?: {
        readonly onlyNew?: boolean;
    }): Promise<User>;
    update(user: User | number, changes: UserChanges): Promise<User>;
    delete(user: User | number): Promise<void>;
    /** For admins. */
    role(id: number, options?: {
        readonly signal?: AbortSignal;
    }): Promise<Role>;
    /** For admins. Another role than before ends the tokens of the user. The last admin stays one: `conflict`. */
    setRole(id: number, role: Role): Promise<Role>;
}
export declare function users(duet: Duet): Users;
