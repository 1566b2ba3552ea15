// Calls of a caller's functions.

/**
 * Returns a caller's function whose exceptions become uncaught errors of the page, as in a listener of an event. The
 * package does not see them.
 */
export function guarded<T>(listener: (what: T) => void): (what: T) => void {
  return (what) => {
    try {
      listener(what);
    } catch (error) {
      setTimeout(() => {
        throw error;
      });
    }
  };
}
