//! The footer, which shows the prompt, a notice, or the keys.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use crate::{
    describe::Level,
    top::{
        keys::{Action, BINDINGS, HelpSection},
        model::{Model, Origin},
        painter::{Hit, Painter},
        prompt::Prompt,
        state::State,
        text::make_printable,
    },
};

/// Draws the notice. Returns `false` if there is no notice.
pub(in crate::top) fn draw_notice(painter: &mut Painter<'_>, area: Rect, state: &State) -> bool {
    let Some(notice) = &state.notice else {
        return false;
    };
    let style = if notice.level == Level::Note {
        painter.theme.well
    } else {
        painter.theme.choose_level_style(notice.level)
    };
    painter.draw_text(area.x, area.y, area.width, &notice.text, style);
    true
}

pub(in crate::top) fn draw_footer(
    painter: &mut Painter<'_>,
    area: Rect,
    model: &Model,
    state: &State,
    prompt: Option<&Prompt>,
) {
    if let Some(prompt) = prompt {
        draw_prompt(painter, area, prompt);
        return;
    }
    if draw_notice(painter, area, state) {
        return;
    }
    let mut bindings: Vec<_> = BINDINGS.iter().collect();
    if state.processes.selected.is_some() {
        bindings.sort_by_key(|binding| match binding.action {
            Action::Quit | Action::Help => 0,
            Action::Details | Action::Signal(_) | Action::TagOrPause => 1,
            _ if binding.part == HelpSection::Processes => 2,
            _ => 3,
        });
    }
    let keys = bindings.into_iter().filter_map(|binding| {
        let is_of_use = binding.part != HelpSection::Replay || model.origin == Origin::Recording;
        let short = match (binding.action, binding.short?) {
            (Action::TagOrPause, _) if state.processes.selected.is_none() => "pause",
            (Action::Quit, _) if model.origin == Origin::Node => "fleet",
            (_, short) => short,
        };
        is_of_use.then_some((binding.shown, short, binding.action))
    });
    for (area, action) in draw_keys(painter, area, keys) {
        painter.add_hit(area, Hit::Do(action));
    }
}

// The last line of every screen, which shows the keys or the prompt.

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
