//! The footer, which shows the prompt, a notice, or the keys. The fleet screen uses the same prompt
//! and the same line of keys.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    layout::Rect,
};
use unicode_width::UnicodeWidthStr;

use crate::{
    describe::Level,
    fleet,
    top::{
        keys::{Action, BINDINGS, HelpSection},
        model::{Model, Origin},
        painter::{Hit, Painter},
        processes::Filter,
        state::State,
        text::make_printable,
    },
};

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
        painter.add_clickable_area(area, Hit::Do(action));
    }
}

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

// The prompt.

/// The maximum length of the typed text, in characters.
const MAX_PROMPT_LENGTH: usize = 200;

/// A line in which the user types a filter, a search, or a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::top) struct Prompt {
    pub(in crate::top) purpose: PromptPurpose,
    pub(in crate::top) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::top) enum PromptPurpose {
    Filter,
    Search,
    Goto,
    /// A filter of the fleet screen. The fleet screen reports mistakes in the filter.
    Fleet,
}

/// The effect of a key press in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::top) enum PromptResult {
    Changed,
    Done,
    Canceled,
    Nothing,
}

impl Prompt {
    pub(in crate::top) fn new(purpose: PromptPurpose, text: &str) -> Self {
        Self {
            purpose,
            text: text.to_owned(),
        }
    }

    fn label(&self) -> &'static str {
        match self.purpose {
            PromptPurpose::Filter | PromptPurpose::Fleet => "filter: ",
            PromptPurpose::Search => "search: ",
            PromptPurpose::Goto => "go to (HH:MM:SS): ",
        }
    }

    pub(in crate::top) fn handle_key(&mut self, key: KeyEvent) -> PromptResult {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => PromptResult::Done,
            KeyCode::Esc => PromptResult::Canceled,
            KeyCode::Char('c') if control => PromptResult::Canceled,
            KeyCode::Char('u') if control => {
                self.text.clear();
                PromptResult::Changed
            }
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
                PromptResult::Changed
            }
            KeyCode::Backspace => {
                self.text.pop();
                PromptResult::Changed
            }
            KeyCode::Char(letter)
                if !control && !letter.is_control() && self.text.len() < MAX_PROMPT_LENGTH =>
            {
                self.text.push(letter);
                PromptResult::Changed
            }
            _ => PromptResult::Nothing,
        }
    }

    /// Returns the mistake in the typed text, if any.
    pub(in crate::top) fn mistake(&self) -> Option<String> {
        match self.purpose {
            PromptPurpose::Filter | PromptPurpose::Search => Filter::new(&self.text).mistake,
            PromptPurpose::Fleet => fleet::filter::Filter::parse(&self.text).err(),
            PromptPurpose::Goto => None,
        }
    }

    /// Returns the end of the text, with as many characters as fit into `columns` columns.
    fn visible_text_end(&self, columns: usize) -> &str {
        let mut starts = self.text.char_indices().map(|(start, _)| start);
        let start = starts
            .find(|start| self.text[*start..].width() <= columns)
            .unwrap_or(self.text.len());
        &self.text[start..]
    }
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
    let text = prompt.visible_text_end(usize::from(room).saturating_sub(1));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_text_is_typed_and_edited() {
        let mut prompt = Prompt::new(PromptPurpose::Filter, "user:ana ");
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        for letter in "gpü".chars() {
            assert_eq!(
                prompt.handle_key(key(KeyCode::Char(letter))),
                PromptResult::Changed
            );
        }
        prompt.handle_key(key(KeyCode::Backspace));
        assert_eq!(prompt.text, "user:ana gp");
        prompt.handle_key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(prompt.text, "user:ana ");
        assert_eq!(prompt.visible_text_end(4), "ana ");
        prompt.handle_key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(prompt.text, "");
        assert_eq!(prompt.handle_key(key(KeyCode::Enter)), PromptResult::Done);
        assert_eq!(prompt.handle_key(key(KeyCode::Esc)), PromptResult::Canceled);
    }
}
