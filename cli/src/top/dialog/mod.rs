//! Dialogs, which cover the screen until they are answered or closed.

mod help;
mod kill;
mod menu;
mod process;
mod setup;

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
    style::Style,
    widgets::{Block, Clear, Widget},
};

pub(super) use self::{
    help::Help,
    kill::Question,
    menu::Menu,
    process::{ProcessScreen, name as process_name},
    setup::{Page, Setup},
};
use super::{
    keys::Action,
    model::Model,
    painter::{Hit, Painter},
    state::State,
};

type Line = Vec<(String, Style)>;

pub(super) enum Dialog {
    Help(Help),
    Process(Box<ProcessScreen>),
    Kill(Question),
    Setup(Setup),
    Menu(Menu),
}

/// The effect of a key in a dialog.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Stay,
    Leave,
    Yes,
    Act(Action),
}

/// Returns the number of lines by which a key moves.
fn moved(code: KeyCode) -> Option<isize> {
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
    /// Moves the selection by a key. Returns `false` if the key does not move it.
    fn key(&mut self, key: KeyEvent, lines: usize) -> bool {
        moved(key.code).map(|by| self.step(by, lines)).is_some()
    }

    fn step(&mut self, by: isize, lines: usize) {
        self.at = self
            .at
            .saturating_add_signed(by)
            .min(lines.saturating_sub(1));
    }

    /// Scrolls so that the selected line is visible.
    fn keep_in_sight(&mut self, screen: Rect) {
        let room = usize::from(screen.height.saturating_sub(2));
        self.scroll.0 = self
            .scroll
            .0
            .min(self.at)
            .max((self.at + 1).saturating_sub(room));
    }
}

/// The first visible line of a dialog.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Scroll(usize);

impl Scroll {
    /// Scrolls by a key. Returns `false` if the key does not scroll.
    fn key(&mut self, key: KeyEvent) -> bool {
        let by = moved(match key.code {
            KeyCode::Char(' ') => KeyCode::PageDown,
            KeyCode::Char('g') => KeyCode::Home,
            KeyCode::Char('G') => KeyCode::End,
            other => other,
        });
        self.0 = self.0.saturating_add_signed(by.unwrap_or(0));
        by.is_some()
    }
}

impl Dialog {
    pub(super) fn key(&mut self, key: KeyEvent, state: &mut State) -> Answer {
        let is_over = matches!(key.code, KeyCode::Esc | KeyCode::Char('q'));
        match self {
            Self::Kill(question) => question.key(key),
            _ if is_over => Answer::Leave,
            Self::Setup(setup) => setup.key(key, state),
            Self::Menu(menu) => menu.key(key, state),
            Self::Help(help) => help.key(key),
            Self::Process(screen) => screen.key(key),
        }
    }

    /// Scrolls by this many lines of the mouse wheel.
    pub(super) fn wheel(&mut self, by: isize) {
        match self {
            Self::Help(help) => help.scroll.0 = help.scroll.0.saturating_add_signed(by),
            Self::Process(process) => process.scroll.0 = process.scroll.0.saturating_add_signed(by),
            Self::Setup(setup) => setup.step(by),
            Self::Menu(menu) => menu.step(by),
            Self::Kill(question) => question.scroll.0 = question.scroll.0.saturating_add_signed(by),
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
            Self::Kill(question) => question.draw(painter, screen),
            Self::Setup(setup) => setup.draw(painter, screen, state),
            Self::Menu(menu) => menu.draw(painter, screen),
        }
    }
}

/// Draws a scrollable box in the middle of the screen, as large as its lines or the screen, and
/// returns its area.
fn draw_box(
    painter: &mut Painter<'_>,
    screen: Rect,
    title: &str,
    columns: u16,
    lines: &[Line],
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
    painter.text(
        area.x + 2,
        area.y,
        area.width.saturating_sub(4),
        &format!(" {title} "),
        painter.theme.strong,
    );
    // A click outside the box closes the dialog.
    painter.hit(screen, Hit::Dialog(usize::MAX));
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
    scrolled_lines(painter, inner, lines, scroll, edge);
    area
}

/// Draws the lines that fit, and at the right end of `more` the number of hidden lines above and
/// below.
fn scrolled_lines(
    painter: &mut Painter<'_>,
    area: Rect,
    lines: &[Line],
    scroll: &mut Scroll,
    more: Rect,
) {
    let room = usize::from(area.height);
    scroll.0 = scroll.0.min(lines.len().saturating_sub(room));
    for (place, line) in lines.iter().skip(scroll.0).take(room).enumerate() {
        let y = area.y + place as u16;
        painter.line(area.x, y, area.width, line);
        painter.hit(
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
        painter.text_right(more.x, more.y, more.width, &text, painter.theme.notice);
    }
}
