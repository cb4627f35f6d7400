export const isDocsPath = (url: string): boolean =>
  (url.startsWith("/docs") || url.startsWith("/openapi.json")) &&
  /^\/(?:openapi\.json|docs(?:\/[^?]*)?)(?:\?|$)/.test(url);
