/** What somebody may have meant by a word with a slip. */

/**
 * The one of `words` that takes the fewest insertions, deletions and replacements; `null` where
 * there are none.
 */
export function nearest(word: string, words: readonly string[]): string | null {
  let best: { word: string; distance: number } | null = null;
  for (const other of words) {
    const distance = distanceOf(word, other);
    if (best === null || distance < best.distance) {
      best = { word: other, distance };
    }
  }
  return best?.word ?? null;
}

/** Levenshtein's distance, with one row of its table at a time. */
function distanceOf(a: string, b: string): number {
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
