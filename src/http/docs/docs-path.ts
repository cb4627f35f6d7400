export const isDocsPath = (url: string): boolean => /^\/(?:openapi\.json|docs(?:\/[^?]*)?)(?:\?|$)/.test(url);
