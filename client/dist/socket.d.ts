import type { Clock } from './clock.ts';
/** The part of `WebSocket` that the client uses. The classes of browsers, of Node and of `ws` have it. */
export interface Socket {
    onopen: ((event: never) => void) | null;
    onmessage: ((event: never) => void) | null;
    onclose: ((event: never) => void) | null;
    onerror: ((event: never) => void) | null;
    send(text: string): void;
    close(code?: number, reason?: string): void;
}
export type SocketConstructor = new (url: string, protocol: string) => Socket;
export interface Message {
    readonly type: string;
    readonly id?: string;
    readonly payload?: unknown;
}
export interface ChannelOptions {
    readonly WebSocket: SocketConstructor;
    readonly url: string;
    readonly token: string | undefined;
    readonly clock: Clock;
    /** The service has accepted the connection. `position`: the end of its event log, if it tells that. */
    readonly onReady: (position: string | undefined) => void;
    /** A message of an operation. */
    readonly onMessage: (message: Message) => void;
    /** Called once, however the connection ends, except by `close`. */
    readonly onLost: (code: number) => void;
}
/**
 * One socket that speaks graphql-transport-ws. A connection can be lost without notice, for example when a laptop
 * sleeps or changes its network. So a silent connection gets a ping, and is closed if no answer comes.
 */
export declare class Channel {
    #private;
    constructor(options: ChannelOptions);
    get isReady(): boolean;
    send(message: object): void;
    /** Calls the function when the service has read all earlier messages. */
    ping(onPong: () => void): void;
    /** Closes the connection. No callback is called after that. */
    close(): void;
}
