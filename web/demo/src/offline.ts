// The registration of the service worker, which opens this page without a network. Development has no service worker.

/** Registers the service worker. The package itself caches the model. */
export function keepOffline(): void {
  void navigator.serviceWorker?.register(new URL('sw.js', document.baseURI)).catch(() => undefined);
}
