/** Text from other users: process names, command lines, host names. */

/**
 * Control characters and characters that are invisible or change the direction of other text.
 * `probe/src/untrusted.rs` has the same rule, and `tests/invisible-characters.json` contains test
 * cases for both implementations.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\ufff9-\ufffb\u{1d159}]/gu;

/** Joins the parts that are not empty. */
export function joinParts(
  parts: readonly (string | null | undefined)[],
  separator = ' · ',
): string {
  return parts.filter(Boolean).join(separator);
}

/** Joins messages as sentences. A period is added to messages without one, such as the server's. */
export function joinSentences(messages: readonly (string | null)[]): string {
  return joinParts(
    messages.map((message) => message?.replace(/[^.!?…]$/, '$&.')),
    ' ',
  );
}

/**
 * Shortens a name to `limit` characters. The start of the name, where folders differ, and its end
 * with the file name are kept.
 */
export function shortenName(name: string, limit: number): string {
  const start = Math.floor((limit - 1) / 3);
  return name.length > limit ? `${name.slice(0, start)}…${name.slice(start + 1 - limit)}` : name;
}

/**
 * Replaces each unprintable character with a visible one, and cuts the text after `limit`
 * characters.
 */
export function plainText(text: string, limit = 400): string {
  const visible = text.replace(UNPRINTABLE, '\ufffd');
  return visible.length > limit ? `${visible.slice(0, limit - 1)}…` : visible;
}
