//! The last line of every screen, which shows the keys or the prompt.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::top::{painter::Painter, prompt::Prompt, text::make_printable};

/// Draws as many keys as fit into one line, and returns the area of each key with its action.
pub(in crate::top) fn draw_keys<A: Copy>(
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
        painter.draw_pieces(x, area.y, width, &parts);
        places.push((Rect { x, width, ..area }, action));
        x += width + 2;
    }
    places
}

/// Draws the prompt and the mistake in its text, if any.
pub(in crate::top) fn draw_prompt(painter: &mut Painter<'_>, area: Rect, prompt: &Prompt) {
    let taken = painter.draw_text(
        area.x,
        area.y,
        area.width,
        prompt.label(),
        painter.theme.strong,
    );
    let room = area.width.saturating_sub(taken);
    // If the text is too long, its end is shown, because the user types there.
    let text = prompt.visible_end(usize::from(room).saturating_sub(1));
    let typed = painter.draw_text(area.x + taken, area.y, room, text, painter.theme.plain);
    painter.draw_text(
        area.x + taken + typed,
        area.y,
        1,
        " ",
        painter.theme.selected,
    );
    if let Some(mistake) = prompt.mistake() {
        let x = area.x + taken + typed + 2;
        painter.draw_text(
            x,
            area.y,
            area.right().saturating_sub(x),
            &make_printable(&mistake),
            painter.theme.notice,
        );
    }
}
