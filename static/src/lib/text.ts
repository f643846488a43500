/** Text that strangers chose: process names, command lines, host names. */

/** Control characters, and those that reorder, join or hide what stands around them. */
// eslint-disable-next-line no-control-regex
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

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

/** The text with everything unprintable made visible, and cut at `limit` characters. */
export function plainText(text: string, limit = 400): string {
  const visible = text.replace(UNPRINTABLE, '\ufffd');
  return visible.length > limit ? `${visible.slice(0, limit - 1)}…` : visible;
}
