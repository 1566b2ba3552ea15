export const KiB = 1024;
export const MiB = 1024 * KiB;
export const GiB = 1024 * MiB;
/** WebAssembly memory comes in pages of this size. */
export const PAGE = 64 * KiB;
/** As many threads as the memory that is left to the host has stacks for. */
export const MAX_THREADS = 8;
