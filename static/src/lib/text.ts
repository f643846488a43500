/** Text that strangers chose: process names, command lines, host names. */

/**
 * Control characters, and those that show nothing or change the direction of other text. The rule
 * is that of `probe/src/untrusted.rs`; `tests/invisible-characters.json` has the cases of both.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\ufff9-\ufffb\u{1d159}]/gu;

/** The parts that there are, one behind the other. */
export function joined(parts: readonly (string | null | undefined)[], separator = ' · '): string {
  return parts.filter(Boolean).join(separator);
}

/** Messages, of which a server's have no full stop, as sentences one behind the other. */
export function sentences(messages: readonly (string | null)[]): string {
  return joined(
    messages.map((message) => message?.replace(/[^.!?…]$/, '$&.')),
    ' ',
  );
}

/**
 * Shortens a name to `limit` characters: keeps its start, where folders differ, and the file name.
 */
export function shortened(name: string, limit: number): string {
  const start = Math.floor((limit - 1) / 3);
  return name.length > limit ? `${name.slice(0, start)}…${name.slice(start + 1 - limit)}` : name;
}

/** The text with everything unprintable made visible, and cut at `limit` characters. */
export function plainText(text: string, limit = 400): string {
  const visible = text.replace(UNPRINTABLE, '\ufffd');
  return visible.length > limit ? `${visible.slice(0, limit - 1)}…` : visible;
}
