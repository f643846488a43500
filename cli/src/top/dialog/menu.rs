//! Menus in which the user chooses one entry: the sort column, or the user whose processes are
//! listed.

use std::collections::BTreeMap;

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{KeyEffect, List, StyledLine, draw_box};
use crate::top::{
    model::Model,
    painter::Painter,
    processes::Column,
    state::State,
    text::{align_left, align_right, make_printable},
};

pub(in crate::top) struct Menu {
    title: &'static str,
    entries: Vec<Entry>,
    list: List,
}

struct Entry {
    text: String,
    choice: Choice,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Sort(Column),
    /// The user to show, or `None` to show all users.
    User(Option<String>),
}

impl Menu {
    fn new(title: &'static str, entries: Vec<Entry>, now: &Choice) -> Self {
        let at = entries
            .iter()
            .position(|entry| entry.choice == *now)
            .unwrap_or(0);
        Self {
            title,
            entries,
            list: List {
                at,
                ..List::default()
            },
        }
    }

    pub(in crate::top) fn with_columns(state: &State) -> Self {
        let entry = |column: &Column| Entry {
            text: column.heading().to_owned(),
            choice: Choice::Sort(*column),
        };
        let entries = state.processes.columns.iter().map(entry).collect();
        Self::new("Sort by", entries, &Choice::Sort(state.processes.sort))
    }

    /// Returns the menu of all users with processes on a GPU, with the number of processes.
    pub(in crate::top) fn with_users(model: &Model, state: &State) -> Self {
        let mut users: BTreeMap<&str, usize> = BTreeMap::new();
        let processes = model
            .gpus()
            .iter()
            .filter_map(|gpu| gpu.processes.value())
            .flatten();
        for user in processes.filter_map(|process| process.user.value()) {
            *users.entry(user).or_default() += 1;
        }
        // The selected user stays in the menu even if no processes remain.
        if let Some(user) = &state.processes.user {
            users.entry(user).or_default();
        }
        let entry = |text: &str, count: usize, choice| Entry {
            text: align_left(text, 20) + &align_right(&count.to_string(), 5),
            choice: Choice::User(choice),
        };
        let mut entries = vec![entry("all users", users.values().sum(), None)];
        entries.extend(
            users.iter().map(|(user, count)| {
                entry(&make_printable(user), *count, Some((*user).to_owned()))
            }),
        );
        Self::new(
            "Processes of",
            entries,
            &Choice::User(state.processes.user.clone()),
        )
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent, state: &mut State) -> KeyEffect {
        match key.code {
            _ if self.list.handle_key(key, self.entries.len()) => {}
            KeyCode::Enter | KeyCode::Char(' ') => {
                self.apply_choice(self.list.at, state);
                return KeyEffect::Leave;
            }
            KeyCode::Char(letter) => self.select_by_letter(letter),
            _ => {}
        }
        KeyEffect::Stay
    }

    /// Moves to the next entry that starts with `letter`.
    fn select_by_letter(&mut self, letter: char) {
        let mut places =
            (1..=self.entries.len()).map(|by| (self.list.at + by) % self.entries.len());
        let begins = |text: &str| {
            text.chars()
                .next()
                .is_some_and(|first| first.eq_ignore_ascii_case(&letter))
        };
        if let Some(place) = places.find(|place| begins(self.entries[*place].text.trim_start())) {
            self.list.at = place;
        }
    }

    pub(super) fn move_selection(&mut self, by: isize) {
        self.list.move_selection(by, self.entries.len());
    }

    pub(in crate::top) fn apply_choice(&mut self, place: usize, state: &mut State) {
        let list = &mut state.processes;
        match self.entries.get(place).map(|entry| &entry.choice) {
            Some(Choice::Sort(column)) if *column != list.sort => {
                (list.sort, list.descending) = (*column, column.is_descending_by_default());
            }
            Some(Choice::User(user)) => list.user.clone_from(user),
            Some(Choice::Sort(_)) | None => {}
        }
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect) {
        let columns = 26;
        let line = |(place, entry): (usize, &Entry)| {
            let style = if place == self.list.at {
                painter.theme.selected
            } else {
                painter.theme.plain
            };
            vec![(align_left(&entry.text, columns), style)]
        };
        let lines: Vec<StyledLine> = self.entries.iter().enumerate().map(line).collect();
        self.list.scroll_into_view(screen);
        draw_box(
            painter,
            screen,
            self.title,
            columns as u16,
            &lines,
            &mut self.list.scroll,
        );
    }
}
