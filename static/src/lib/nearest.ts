/** Suggestions for misspelled words. */

/**
 * Returns the word with the fewest insertions, deletions and replacements, or `null` if `words` is
 * empty.
 */
export function findNearestWord(word: string, words: readonly string[]): string | null {
  let best: { word: string; distance: number } | null = null;
  for (const other of words) {
    const distance = editDistance(word, other);
    if (best === null || distance < best.distance) {
      best = { word: other, distance };
    }
  }
  return best?.word ?? null;
}

/** Returns the Levenshtein distance, computed one table row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
