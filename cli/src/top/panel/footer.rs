//! The footer, which shows the prompt, a notice, or the keys.

use ratatui::layout::Rect;

use super::last_line;
use crate::{
    describe::Level,
    top::{
        keys::{Action, BINDINGS, HelpSection},
        model::{Model, Origin},
        painter::{Hit, Painter},
        prompt::Prompt,
        state::State,
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
        last_line::draw_prompt(painter, area, prompt);
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
    for (area, action) in last_line::draw_keys(painter, area, keys) {
        painter.add_hit(area, Hit::Do(action));
    }
}
