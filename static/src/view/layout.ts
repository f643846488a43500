/** How wide a view is. */

/** From this width on there is room for cards side by side, and for a user's column. */
export const WIDE_PX = 560;
