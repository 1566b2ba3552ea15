// The script inside of the page that runs before anything after it is there, so that an offer does not move the page.

import { KEPT, noted, showOffer } from './noted.js';

const last = noted();
// A link brings its own model and text.
if (last && !location.hash.includes('prompt=')) showOffer(last, KEPT);
