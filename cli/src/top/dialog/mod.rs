//! Dialogs, which cover the screen until the user answers or closes them. This file contains the
//! help, the menus, and the parts that all dialogs share.

mod process;
mod setup;
mod signal;

use std::collections::BTreeMap;

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
    widgets::{Block, Clear, Widget},
};

use super::{
    keys::{Action, BINDINGS, HelpSection},
    model::{Model, Origin},
    painter::{Hit, Painter, StyledLine},
    processes::Column,
    state::State,
    text::{align_left, align_right, make_printable, wrap},
};

pub(super) use self::{
    process::{ProcessScreen, process_name},
    setup::{Page, Setup},
    signal::SignalDialog,
};

pub(super) enum Dialog {
    Help(Help),
    Process(Box<ProcessScreen>),
    Signal(SignalDialog),
    Setup(Setup),
    Menu(Menu),
}

/// The effect of a key press in a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyEffect {
    Stay,
    Leave,
    Yes,
    Act(Action),
}

impl Dialog {
    pub(super) fn handle_key(&mut self, key: KeyEvent, state: &mut State) -> KeyEffect {
        let is_close_key = matches!(key.code, KeyCode::Esc | KeyCode::Char('q'));
        match self {
            Self::Signal(question) => question.handle_key(key),
            _ if is_close_key => KeyEffect::Leave,
            Self::Setup(setup) => setup.handle_key(key, state),
            Self::Menu(menu) => menu.handle_key(key, state),
            Self::Help(help) => help.handle_key(key),
            Self::Process(screen) => screen.handle_key(key),
        }
    }

    /// Scrolls by a number of lines, for the mouse wheel.
    pub(super) fn scroll_by(&mut self, by: isize) {
        match self {
            Self::Help(help) => help.scroll.move_by(by),
            Self::Process(process) => process.scroll.move_by(by),
            Self::Setup(setup) => setup.move_selection(by),
            Self::Menu(menu) => menu.move_selection(by),
            Self::Signal(question) => question.scroll.move_by(by),
        }
    }

    pub(super) fn draw(
        &mut self,
        painter: &mut Painter<'_>,
        screen: Rect,
        model: &Model,
        state: &State,
    ) {
        match self {
            Self::Help(help) => help.draw(painter, screen, model),
            Self::Process(process) => process.draw(painter, screen, model, state),
            Self::Signal(question) => question.draw(painter, screen),
            Self::Setup(setup) => setup.draw(painter, screen, state),
            Self::Menu(menu) => menu.draw(painter, screen),
        }
    }
}

/// The help, which lists all key bindings.
#[derive(Default)]
pub(super) struct Help {
    scroll: Scroll,
}

impl Help {
    fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        if self.scroll.handle_key(key) {
            KeyEffect::Stay
        } else {
            KeyEffect::Leave
        }
    }

    fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect, model: &Model) {
        let parts = [
            (HelpSection::Screen, "The screen"),
            (HelpSection::Charts, "Charts"),
            (HelpSection::Processes, "Processes"),
            (HelpSection::Replay, "Replay"),
        ];
        let mut lines: Vec<StyledLine> = Vec::new();
        for (part, title) in parts {
            if part == HelpSection::Replay && model.origin != Origin::Recording {
                continue;
            }
            if !lines.is_empty() {
                lines.push(StyledLine::new());
            }
            lines.push(vec![(title.to_owned(), painter.theme.strong)]);
            for binding in BINDINGS.iter().filter(|binding| binding.part == part) {
                lines.push(vec![
                    (
                        align_left(&binding.format_keys(), 12),
                        painter.theme.utilization,
                    ),
                    (binding.help.to_owned(), painter.theme.plain),
                ]);
            }
        }
        lines.push(StyledLine::new());
        let mouse = "Mouse: click a GPU, a tab, a heading or a process to select it; click \
         again for details; scroll with the wheel.";
        lines.extend(
            wrap(mouse, 60)
                .into_iter()
                .map(|line| vec![(line, painter.theme.dim)]),
        );
        draw_box(painter, screen, "Keys", 62, &lines, &mut self.scroll);
    }
}

/// A menu in which the user chooses one entry: the sort column, or the user whose processes are
/// listed.
pub(super) struct Menu {
    title: &'static str,
    entries: Vec<MenuEntry>,
    list: List,
}

struct MenuEntry {
    text: String,
    choice: MenuChoice,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MenuChoice {
    Sort(Column),
    /// The user to show, or `None` to show all users.
    User(Option<String>),
}

impl Menu {
    fn new(title: &'static str, entries: Vec<MenuEntry>, now: &MenuChoice) -> Self {
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

    pub(super) fn new_sort_menu(state: &State) -> Self {
        let entry = |column: &Column| MenuEntry {
            text: column.heading().to_owned(),
            choice: MenuChoice::Sort(*column),
        };
        let entries = state.processes.columns.iter().map(entry).collect();
        Self::new("Sort by", entries, &MenuChoice::Sort(state.processes.sort))
    }

    /// Returns the menu of all users with processes on a GPU. Each entry shows how many processes
    /// the user has.
    pub(super) fn new_user_menu(model: &Model, state: &State) -> Self {
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
        let entry = |text: &str, count: usize, choice| MenuEntry {
            text: align_left(text, 20) + &align_right(&count.to_string(), 5),
            choice: MenuChoice::User(choice),
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
            &MenuChoice::User(state.processes.user.clone()),
        )
    }

    fn handle_key(&mut self, key: KeyEvent, state: &mut State) -> KeyEffect {
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

    fn move_selection(&mut self, by: isize) {
        self.list.move_selection(by, self.entries.len());
    }

    pub(super) fn apply_choice(&mut self, place: usize, state: &mut State) {
        let list = &mut state.processes;
        match self.entries.get(place).map(|entry| &entry.choice) {
            Some(MenuChoice::Sort(column)) if *column != list.sort => {
                (list.sort, list.descending) = (*column, column.is_descending_by_default());
            }
            Some(MenuChoice::User(user)) => list.user.clone_from(user),
            Some(MenuChoice::Sort(_)) | None => {}
        }
    }

    fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect) {
        let columns = 26;
        let line = |(place, entry): (usize, &MenuEntry)| {
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

// Parts that dialogs share.

/// Returns the number of lines by which a key moves the position, or `None` for other keys.
fn lines_moved_by_key(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown => 10,
        KeyCode::PageUp => -10,
        KeyCode::Home => isize::MIN,
        KeyCode::End => isize::MAX,
        _ => return None,
    })
}

/// A list with one selected line.
#[derive(Debug, Default)]
pub(super) struct List {
    at: usize,
    scroll: Scroll,
}

impl List {
    /// Moves the selection. Returns `false` if the key is not a movement key.
    fn handle_key(&mut self, key: KeyEvent, lines: usize) -> bool {
        lines_moved_by_key(key.code)
            .map(|by| self.move_selection(by, lines))
            .is_some()
    }

    fn move_selection(&mut self, by: isize, lines: usize) {
        self.at = self
            .at
            .saturating_add_signed(by)
            .min(lines.saturating_sub(1));
    }

    /// Scrolls so that the selected line is visible.
    fn scroll_into_view(&mut self, screen: Rect) {
        let room = usize::from(screen.height.saturating_sub(2));
        self.scroll.0 = self
            .scroll
            .0
            .min(self.at)
            .max((self.at + 1).saturating_sub(room));
    }
}

/// The index of the first visible line in a dialog.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Scroll(usize);

impl Scroll {
    fn move_by(&mut self, lines: isize) {
        self.0 = self.0.saturating_add_signed(lines);
    }

    /// Scrolls the dialog. Returns `false` if the key is not a scroll key.
    fn handle_key(&mut self, key: KeyEvent) -> bool {
        let by = lines_moved_by_key(match key.code {
            KeyCode::Char(' ') => KeyCode::PageDown,
            KeyCode::Char('g') => KeyCode::Home,
            KeyCode::Char('G') => KeyCode::End,
            other => other,
        });
        if let Some(by) = by {
            self.move_by(by);
        }
        by.is_some()
    }
}

/// Draws a scrollable box in the middle of the screen and returns its area. The box is as large as
/// its lines, but not larger than the screen.
fn draw_box(
    painter: &mut Painter<'_>,
    screen: Rect,
    title: &str,
    columns: u16,
    lines: &[StyledLine],
    scroll: &mut Scroll,
) -> Rect {
    let width = (columns + 4).min(screen.width);
    let height = (lines.len() as u16 + 2).min(screen.height);
    let area = Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 2,
        width,
        height,
    };
    Clear.render(area, painter.buffer);
    Block::bordered()
        .style(painter.theme.plain)
        .border_style(painter.theme.dim)
        .render(area, painter.buffer);
    painter.draw_text(
        area.x + 2,
        area.y,
        area.width.saturating_sub(4),
        &format!(" {title} "),
        painter.theme.strong,
    );
    // This entry covers the whole screen, below all other entries. A click outside the box
    // therefore hits this entry, which closes the dialog.
    painter.add_clickable_area(screen, Hit::Dialog(usize::MAX));
    let inner = Rect {
        x: area.x + 2,
        y: area.y + 1,
        width: area.width.saturating_sub(4),
        height: height.saturating_sub(2),
    };
    let edge = Rect {
        y: area.bottom() - 1,
        height: 1,
        width: area.width.saturating_sub(2),
        ..area
    };
    draw_scrolled_lines(painter, inner, lines, scroll, edge);
    area
}

/// Draws as many lines as fit. At the right end of the area `more`, draws how many lines are hidden
/// above and below.
fn draw_scrolled_lines(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[StyledLine],
    scroll: &mut Scroll,
    more: Rect,
) {
    let room = usize::from(area.height);
    scroll.0 = scroll.0.min(lines.len().saturating_sub(room));
    for (place, line) in lines.iter().skip(scroll.0).take(room).enumerate() {
        let y = area.y + place as u16;
        painter.draw_pieces(area.x, y, area.width, line);
        painter.add_clickable_area(
            Rect {
                y,
                height: 1,
                ..area
            },
            Hit::Dialog(scroll.0 + place),
        );
    }
    let below = lines.len().saturating_sub(scroll.0 + room);
    if below > 0 || scroll.0 > 0 {
        let text = format!(" {} ▲ {below} ▼ ", scroll.0);
        painter.draw_text_right(more.x, more.y, more.width, &text, painter.theme.notice);
    }
}
