/** What jsdom lacks and uPlot asks for when it is loaded. */

globalThis.matchMedia = (media: string): MediaQueryList => {
  const query = new EventTarget();
  return Object.assign(query, { matches: false, media, onchange: null }) as MediaQueryList;
};
