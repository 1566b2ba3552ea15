// The part of a Content-Security-Policy that a script notices: a fetch that it refuses.

/** Returns whether the policy of this page or worker refuses to fetch from an address. Asks the server if it does not. */
export async function policyRefuses(url: string, ask: typeof fetch, signal?: AbortSignal): Promise<boolean> {
  const scope = globalThis as Partial<Pick<Window, 'addEventListener' | 'removeEventListener'>>; // Node has neither
  let refuses = false;
  const note = ({ effectiveDirective }: Partial<SecurityPolicyViolationEvent>) => {
    refuses ||= effectiveDirective === 'connect-src';
  };
  scope.addEventListener?.('securitypolicyviolation', note);
  await ask(url, { method: 'HEAD', mode: 'no-cors', cache: 'no-store', ...(signal && { signal }) }).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve)); // a violation is an event of a later task
  scope.removeEventListener?.('securitypolicyviolation', note);
  return refuses;
}

/** The fault and its remedy, as the end of a sentence. A violation does not name the address of a redirection. */
export const policyNeeds = (url: string): string =>
  `the Content-Security-Policy refuses it: connect-src needs ${new URL(url).origin}, and the origins that it redirects to`;
