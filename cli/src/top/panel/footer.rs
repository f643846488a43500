//! The last line: what was asked for, what came of it, or the keys.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::{
    describe::Level,
    top::{
        keys::{Action, BINDINGS, Part},
        model::{Model, Origin},
        painter::{Hit, Painter},
        prompt::Prompt,
        state::State,
        text::printable,
    },
};

/// What there is to be read once; false where there is nothing.
pub(in crate::top) fn notice(painter: &mut Painter<'_>, area: Rect, state: &State) -> bool {
    let Some(notice) = &state.notice else { return false };
    let style = if notice.level == Level::Note { painter.theme.well } else { painter.theme.of_level(notice.level) };
    painter.text(area.x, area.y, area.width, &notice.text, style);
    true
}

pub(in crate::top) fn footer(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
    prompt: Option<&Prompt>,
) {
    if let Some(prompt) = prompt {
        let taken = painter.text(area.x, area.y, area.width, prompt.question(), painter.theme.strong);
        let room = area.width.saturating_sub(taken);
        // Of what is too long, the end is where one types.
        let text = prompt.end(usize::from(room).saturating_sub(1));
        let typed = painter.text(area.x + taken, area.y, room, text, painter.theme.plain);
        painter.text(area.x + taken + typed, area.y, 1, " ", painter.theme.selected);
        if let Some(mistake) = prompt.mistake() {
            let x = area.x + taken + typed + 2;
            painter.text(x, area.y, area.right().saturating_sub(x), &printable(&mistake), painter.theme.notice);
        }
        return;
    }
    if notice(painter, area, state) {
        return;
    }
    let mut x = area.x;
    let mut bindings: Vec<_> = BINDINGS.iter().collect();
    if state.processes.selected.is_some() {
        bindings.sort_by_key(|binding| match binding.action {
            Action::Quit | Action::Help => 0,
            Action::Details | Action::Signal(_) | Action::TagOrPause => 1,
            _ if binding.part == Part::Processes => 2,
            _ => 3,
        });
    }
    for binding in bindings {
        let is_of_use = binding.part != Part::Replay || model.origin == Origin::Recording;
        let Some(short) = binding.short.filter(|_| is_of_use) else { continue };
        let short = match binding.action {
            Action::TagOrPause if state.processes.selected.is_none() => "pause",
            Action::Quit if model.origin == Origin::Node => "fleet",
            _ => short,
        };
        let width = (binding.shown.width() + 1 + short.width()) as u16;
        if x + width > area.right() {
            break;
        }
        painter.line(
            x,
            area.y,
            width,
            &[(binding.shown, painter.theme.strong), (" ", painter.theme.plain), (short, painter.theme.dim)],
        );
        painter.hit(Rect { x, width, ..area }, Hit::Do(binding.action));
        x += width + 2;
    }
}
