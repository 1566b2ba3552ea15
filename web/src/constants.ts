export const KiB = 1024;
export const MiB = 1024 * KiB;
export const GiB = 1024 * MiB;
/** The page size of WebAssembly memory, in bytes. */
export const PAGE = 64 * KiB;
/** The most threads: the host reserve has room for the stacks of this many. */
export const MAX_THREADS = 8;
