// Names that nothing else has.

/** Returns a name of 128 random bits. crypto.randomUUID() is absent from pages that came over http. */
export const randomName = (): string => Array.from(crypto.getRandomValues(new Uint32Array(4))).join('-');
