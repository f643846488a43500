//! A line of input from the user: a filter, a search, or a time.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr;

use super::processes::Filter;
use crate::fleet;

/// The maximum length of the line.
const LONGEST: usize = 200;

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
    /// A filter of the fleet screen, which reports its errors itself.
    Fleet,
}

/// The result of a key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
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

    pub(super) fn question(&self) -> &'static str {
        match self.purpose {
            Purpose::Filter | Purpose::Fleet => "filter: ",
            Purpose::Search => "search: ",
            Purpose::Goto => "go to (HH:MM:SS): ",
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => Typed::Done,
            KeyCode::Esc => Typed::Canceled,
            KeyCode::Char('c') if control => Typed::Canceled,
            KeyCode::Char('u') if control => {
                self.text.clear();
                Typed::Changed
            }
            KeyCode::Char('w') if control => {
                let kept = self.text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                self.text.truncate(kept);
                Typed::Changed
            }
            KeyCode::Backspace => {
                self.text.pop();
                Typed::Changed
            }
            KeyCode::Char(letter)
                if !control && !letter.is_control() && self.text.len() < LONGEST =>
            {
                self.text.push(letter);
                Typed::Changed
            }
            _ => Typed::Nothing,
        }
    }

    pub(super) fn mistake(&self) -> Option<String> {
        match self.purpose {
            Purpose::Filter | Purpose::Search => Filter::new(&self.text).mistake,
            Purpose::Fleet => fleet::filter::Filter::parse(&self.text).err(),
            Purpose::Goto => None,
        }
    }

    pub(super) fn end(&self, columns: usize) -> &str {
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
    fn a_line_is_typed_and_mended() {
        let mut prompt = Prompt::new(Purpose::Filter, "user:ana ");
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        for letter in "gpü".chars() {
            assert_eq!(prompt.key(key(KeyCode::Char(letter))), Typed::Changed);
        }
        prompt.key(key(KeyCode::Backspace));
        assert_eq!(prompt.text, "user:ana gp");
        prompt.key(KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL));
        assert_eq!(prompt.text, "user:ana ");
        assert_eq!(prompt.end(4), "ana ");
        prompt.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(prompt.text, "");
        assert_eq!(prompt.key(key(KeyCode::Enter)), Typed::Done);
        assert_eq!(prompt.key(key(KeyCode::Esc)), Typed::Canceled);
    }
}
