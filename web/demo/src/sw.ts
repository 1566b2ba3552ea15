// The page's service worker.

import { serveOffline } from '../../src/offline.js';

/** A digest of the files, and their names. The build sets both. */
declare const QSF_VERSION: string;
declare const QSF_FILES: string[];

serveOffline({ version: QSF_VERSION, files: QSF_FILES, isolate: true });
