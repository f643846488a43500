/** Text with terminal escape sequences, converted to spans with classes. */

export interface Span {
  text: string;
  classes: string[];
}

const WEIGHTS: Record<number, string> = { 1: 'bold', 2: 'dim', 4: 'underlined' };
const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/**
 * Converts the output of a program to spans. Supports bold, dim, underline and the eight foreground
 * colors. Throws an error for any other escape sequence, because the image would be wrong.
 */
export function parseAnsiSpans(printed: string): Span[] {
  const spans: Span[] = [];
  let classes: string[] = [];
  // oxlint-disable-next-line no-control-regex -- escape sequences are what this is about
  for (const part of printed.replaceAll('\r', '').split(/(\u001B\[[\d;]*m)/)) {
    // oxlint-disable-next-line no-control-regex
    const codes = /^\u001B\[([\d;]*)m$/.exec(part)?.[1];
    if (codes === undefined) {
      spans.push({ text: part, classes });
    } else {
      for (const code of codes.split(';').map(Number)) {
        classes = applyCode(classes, code);
      }
    }
  }
  return spans.filter(({ text }) => text !== '');
}

function applyCode(classes: readonly string[], code: number): string[] {
  const color = COLORS[code % 10];
  if (code === 0) {
    return [];
  }
  const weight = WEIGHTS[code];
  if (weight !== undefined) {
    return [...classes, weight];
  }
  if (color !== undefined && [3, 9].includes(Math.floor(code / 10))) {
    return [...classes.filter((name) => !COLORS.includes(name)), color];
  }
  throw new Error(`the terminal's code ${code} is not known here`);
}
