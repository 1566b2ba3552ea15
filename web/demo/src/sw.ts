// The page's service worker.

import { serveOffline } from '../../src/offline.js';

/** Set by the build: a digest of the files, and their names. */
declare const QSF_VERSION: string;
declare const QSF_FILES: string[];

serveOffline({ version: QSF_VERSION, files: QSF_FILES, isolate: true });
