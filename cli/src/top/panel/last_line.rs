//! The last line of every screen: keys, or the prompt.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::top::{painter::Painter, prompt::Prompt, text::printable};

/// Draws as many keys as fit in one line, and returns their areas.
pub(in crate::top) fn keys<A: Copy>(
    painter: &mut Painter<'_>,
    area: Rect,
    keys: impl Iterator<Item = (&'static str, &'static str, A)>,
) -> Vec<(Rect, A)> {
    let mut x = area.x;
    let mut places = Vec::new();
    for (shown, short, action) in keys {
        let width = (shown.width() + 1 + short.width()) as u16;
        if x + width > area.right() {
            break;
        }
        let parts = [
            (shown, painter.theme.strong),
            (" ", painter.theme.plain),
            (short, painter.theme.dim),
        ];
        painter.line(x, area.y, width, &parts);
        places.push((Rect { x, width, ..area }, action));
        x += width + 2;
    }
    places
}

/// Draws the prompt, and its mistake, if any.
pub(in crate::top) fn prompt(painter: &mut Painter<'_>, area: Rect, prompt: &Prompt) {
    let taken = painter.text(
        area.x,
        area.y,
        area.width,
        prompt.question(),
        painter.theme.strong,
    );
    let room = area.width.saturating_sub(taken);
    // If the text is too long, its end is shown, because that is where the user types.
    let text = prompt.end(usize::from(room).saturating_sub(1));
    let typed = painter.text(area.x + taken, area.y, room, text, painter.theme.plain);
    painter.text(
        area.x + taken + typed,
        area.y,
        1,
        " ",
        painter.theme.selected,
    );
    if let Some(mistake) = prompt.mistake() {
        let x = area.x + taken + typed + 2;
        painter.text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &printable(&mistake),
            painter.theme.notice,
        );
    }
}
