//! The last line: what was asked for, what came of it, or the keys.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::{
    top::{
        keys::{BINDINGS, Part},
        pen::{Hit, Pen},
        prompt::Prompt,
        state::State,
        text::printable,
        world::{Origin, World},
    },
    words::Level,
};

pub(in crate::top) fn footer(pen: &mut Pen<'_>, area: Rect, world: &World, state: &State, prompt: Option<&Prompt>) {
    if let Some(prompt) = prompt {
        let taken = pen.text(area.x, area.y, area.width, prompt.question(), pen.theme.strong);
        let room = area.width.saturating_sub(taken);
        // Of what is too long, the end is where one types.
        let text = prompt.end(usize::from(room).saturating_sub(1));
        let typed = pen.text(area.x + taken, area.y, room, text, pen.theme.plain);
        pen.text(area.x + taken + typed, area.y, 1, " ", pen.theme.selected);
        if let Some(mistake) = prompt.mistake() {
            let x = area.x + taken + typed + 2;
            pen.text(x, area.y, area.right().saturating_sub(x), &printable(&mistake), pen.theme.notice);
        }
        return;
    }
    if let Some(notice) = &state.notice {
        let style = if notice.level == Level::Note { pen.theme.well } else { pen.theme.of_level(notice.level) };
        pen.text(area.x, area.y, area.width, &notice.text, style);
        return;
    }
    let mut x = area.x;
    for binding in BINDINGS {
        let is_of_use = binding.part != Part::Replay || world.origin == Origin::Recording;
        let Some(short) = binding.short.filter(|_| is_of_use) else { continue };
        let width = (binding.shown.width() + 1 + short.width()) as u16;
        if x + width > area.right() {
            break;
        }
        pen.line(
            x,
            area.y,
            width,
            &[(binding.shown, pen.theme.strong), (" ", pen.theme.plain), (short, pen.theme.dim)],
        );
        pen.hit(Rect { x, width, ..area }, Hit::Do(binding.action));
        x += width + 2;
    }
}
