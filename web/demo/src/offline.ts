// The service worker that opens this page without a network; where there is none, as in development, the page does without.

/** Registers it. The model is kept by the package itself. */
export function keepOffline(): void {
  void navigator.serviceWorker?.register(new URL('sw.js', document.baseURI)).catch(() => undefined);
}
