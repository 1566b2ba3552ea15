// The package as it is published is what the browsers get.
import { buildPackage } from '../scripts/lib/package.mjs';

export default async function setup(): Promise<void> {
  await buildPackage();
}
