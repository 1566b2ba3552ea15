// Made by scripts/gen-hub.mjs from native/made/hub_files.def.
/** Endings of models' names, in any case of letters. */
export const hubEndings: readonly string[] = ['.gguf', '.qsf'];
/** The ending of the parts of one model, with zeros for digits. */
export const hubPart = '-00000-of-00000.gguf';
/** Words in the names of files that are no models. */
export const hubOthers: readonly string[] = ['mmproj', 'imatrix'];
/** The share of the budget that weights may take, as a fraction. */
export const hubShare = { numerator: 7, denominator: 8 } as const;
