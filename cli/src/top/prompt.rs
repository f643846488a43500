//! A line in which the user types a filter, a search, or a time.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr;

use super::processes::Filter;
use crate::fleet;

/// The maximum length of the typed text, in characters.
const MAX_LENGTH: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Filter,
    Search,
    Goto,
    /// A filter of the fleet screen. The fleet screen reports mistakes in the filter.
    Fleet,
}

/// The effect of a key press in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptResult {
    Changed,
    Done,
    Canceled,
    Nothing,
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, text: &str) -> Self {
        Self {
            purpose,
            text: text.to_owned(),
        }
    }

    pub(super) fn label(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter | Purpose::Fleet => "filter: ",
            Purpose::Search => "search: ",
            Purpose::Goto => "go to (HH:MM:SS): ",
        }
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> PromptResult {
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
                if !control && !letter.is_control() && self.text.len() < MAX_LENGTH =>
            {
                self.text.push(letter);
                PromptResult::Changed
            }
            _ => PromptResult::Nothing,
        }
    }

    pub(super) fn mistake(&self) -> Option<String> {
        match self.purpose {
            Purpose::Filter | Purpose::Search => Filter::new(&self.text).mistake,
            Purpose::Fleet => fleet::filter::Filter::parse(&self.text).err(),
            Purpose::Goto => None,
        }
    }

    pub(super) fn visible_end(&self, columns: usize) -> &str {
        let mut starts = self.text.char_indices().map(|(start, _)| start);
        let start = starts
            .find(|start| self.text[*start..].width() <= columns)
            .unwrap_or(self.text.len());
        &self.text[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_text_is_typed_and_edited() {
        let mut prompt = Prompt::new(Purpose::Filter, "user:ana ");
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
        assert_eq!(prompt.visible_end(4), "ana ");
        prompt.handle_key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(prompt.text, "");
        assert_eq!(prompt.handle_key(key(KeyCode::Enter)), PromptResult::Done);
        assert_eq!(prompt.handle_key(key(KeyCode::Esc)), PromptResult::Canceled);
    }
}
