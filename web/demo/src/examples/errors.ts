import { QSF, QSFError, MiB } from 'qsf';

export async function run(model: string, print: (text: string) => void) {
  try {
    await QSF.load(model, { memory: 1.25 * MiB });
  } catch (error) {
    if (error instanceof QSFError) print(`${error.code}: ${error.message}`);
  }
}
