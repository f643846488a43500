//! The state of the fleet screen, and the effects of keys and mouse.

use std::sync::Arc;

use gpumon_fleet::{
    Rows,
    model::{Fleet, FleetState},
};
use ratatui::{
    crossterm::event::{
        Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent,
        MouseEventKind,
    },
    layout::{Position, Rect},
};

use super::{
    cell::Metric,
    keys::{self, Action},
    live_node::{LiveNode, Opener},
};
use crate::terminal::glyphs::Glyphs;
use crate::{
    fleet::{
        filter::Filter,
        nodes::{Line, Sort, list_nodes},
    },
    top::{
        background::Background,
        input::Input,
        live::Next,
        prompt::{Prompt, Purpose, Typed},
        theme::{Theme, ThemeName},
    },
};

/// The arrangement of the nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum View {
    /// One line per node.
    #[default]
    List,
    /// A map with as many nodes as fit on the screen.
    Map,
}

pub(super) struct FleetApp {
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) view: View,
    pub(super) metric: Metric,
    pub(super) sort: Sort,
    /// The filter as typed, and its parsed form.
    pub(super) filter: (String, Filter),
    pub(super) prompt: Option<Prompt>,
    /// The name of the selected node, which stays selected when the order changes.
    pub(super) selected: Option<String>,
    /// Whether the fleet's data about the selected node is shown, for example until its live screen
    /// is ready.
    pub(super) is_open: bool,
    /// The live screen of the selected node.
    pub(super) node: Option<LiveNode>,
    pub(super) refusal: String,
    opener: Opener,
    /// The first visible node.
    pub(super) first: usize,
    pub(super) room: Room,
    pub(super) has_help: bool,
    pub(super) theme_name: ThemeName,
    pub(super) theme: Theme,
    background: Background,
    pub(super) glyphs: Glyphs,
    /// The clickable areas, with the name of the node in each.
    pub(super) hits: Vec<(Rect, String)>,
}

/// The capacity of the last layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) nodes: usize,
    pub(super) in_a_row: usize,
}

impl FleetApp {
    pub(super) fn new(opener: Opener) -> Self {
        let (theme, glyphs) = (opener.theme, opener.glyphs);
        Self {
            fleet: None,
            view: View::default(),
            metric: Metric::default(),
            sort: Sort::default(),
            filter: (String::new(), Filter::default()),
            prompt: None,
            selected: None,
            is_open: false,
            node: None,
            refusal: String::new(),
            opener,
            first: 0,
            room: Room {
                nodes: 1,
                in_a_row: 1,
            },
            has_help: false,
            theme_name: theme,
            theme: Theme::new(theme),
            background: Background::default(),
            glyphs,
            hits: Vec::new(),
        }
    }

    /// Returns the visible nodes in order.
    pub(super) fn list_nodes<'a>(&self, rows: &'a Rows<'a>) -> Vec<Line<'a>> {
        list_nodes(rows, self.filter.1.shown(rows).as_deref(), self.sort)
    }

    /// Returns the position of the selected node among the visible ones.
    pub(super) fn place(&self, lines: &[Line<'_>]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        lines
            .iter()
            .position(|line| line.rows.node_name(line.node) == selected)
    }

    /// Opens the selected node, or tries again.
    fn open(&mut self) {
        let Some(selected) = &self.selected else {
            return;
        };
        self.is_open = true;
        self.refusal.clear();
        match self.opener.open(selected, self.theme_name, self.background) {
            Ok(node) => self.node = Some(node),
            Err(error) => {
                self.refusal = format!("{selected} does not open: {error}; leave other programs");
            }
        }
    }

    /// Handles an input of a node: the node is shown, or the reason why it cannot be.
    pub(super) fn of_node(&mut self, number: u64, input: Input) -> Next {
        let Some(node) = &mut self.node else {
            return Next::Wait;
        };
        node.take(number, input).unwrap_or_else(|why| {
            (self.node, self.refusal) = (None, why);
            Next::Draw
        })
    }

    pub(super) fn live_node(&mut self) -> Option<&mut LiveNode> {
        self.node.as_mut().filter(|node| node.is_shown)
    }

    /// Sets the terminal's background, which changes the themes that follow it.
    pub(super) fn set_background(&mut self, background: Background) {
        self.background = background;
        self.theme = Theme::new(self.theme_name.resolve(background));
        if let Some(node) = &mut self.node {
            node.set_background(background);
        }
    }

    pub(super) fn terminal(&mut self, event: &Event) -> Next {
        if let Some(node) = self.live_node() {
            let next = node.terminal(event);
            let is_end =
                matches!(event, Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL));
            if next != Next::Quit || is_end {
                return next;
            }
            (self.node, self.is_open) = (None, false);
            return Next::Draw;
        }
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Mouse(mouse) => self.mouse(*mouse),
            _ => Next::Wait,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Next {
        if let Some(prompt) = &mut self.prompt {
            match prompt.key(key) {
                Typed::Nothing => return Next::Wait,
                Typed::Changed => {
                    let text = prompt.text.clone();
                    self.set_filter(&text);
                }
                Typed::Done => self.prompt = None,
                Typed::Canceled => {
                    self.prompt = None;
                    self.set_filter("");
                }
            }
            return Next::Draw;
        }
        let action = keys::action(key);
        if self.has_help && !matches!(action, Some(Action::Quit) if key.code != KeyCode::Char('q'))
        {
            self.has_help = false;
            return Next::Draw;
        }
        action.map_or(Next::Wait, |action| self.act(action))
    }

    fn mouse(&mut self, mouse: MouseEvent) -> Next {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.act(Action::Row(1)),
            MouseEventKind::ScrollUp => self.act(Action::Row(-1)),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position {
                    x: mouse.column,
                    y: mouse.row,
                };
                let Some((_, node)) = self.hits.iter().rev().find(|(area, _)| area.contains(at))
                else {
                    return Next::Wait;
                };
                let is_again = self.selected.as_ref() == Some(node);
                self.selected = Some(node.clone());
                if is_again {
                    self.open();
                }
                Next::Draw
            }
            _ => Next::Wait,
        }
    }

    fn act(&mut self, action: Action) -> Next {
        match action {
            Action::Quit => return Next::Quit,
            Action::Suspend => return Next::Suspend,
            Action::Redraw => return Next::DrawAnew,
            Action::Help => self.has_help = true,
            Action::Back if self.is_open => (self.node, self.is_open) = (None, false),
            Action::Back => self.set_filter(""),
            Action::Open => self.open(),
            Action::Move(by) => self.step(by),
            Action::Row(by) => self.step(by * self.room.in_a_row.cast_signed()),
            Action::Page(by) => self.step(by * self.room.nodes.max(1).cast_signed()),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::NextView => {
                self.view = if self.view == View::List {
                    View::Map
                } else {
                    View::List
                };
            }
            Action::NextMetric => self.metric = beside(&Metric::ALL, self.metric, 1),
            Action::PreviousMetric => self.metric = beside(&Metric::ALL, self.metric, -1),
            Action::NextSort => self.sort = beside(&Sort::ALL, self.sort, 1),
            Action::PreviousSort => self.sort = beside(&Sort::ALL, self.sort, -1),
            Action::Filter => self.prompt = Some(Prompt::new(Purpose::Fleet, &self.filter.0)),
            Action::Word(word) => {
                let mut words: Vec<&str> = self.filter.0.split_whitespace().collect();
                match words.iter().position(|known| *known == word) {
                    Some(at) => drop(words.remove(at)),
                    None => words.push(word),
                }
                let words = words.join(" ");
                self.set_filter(&words);
            }
            Action::Theme => {
                self.theme_name = self.theme_name.next(self.background);
                self.set_background(self.background);
            }
        }
        Next::Draw
    }

    /// Applies the typed filter. If it is invalid, the previous filter stays, and the prompt shows
    /// the reason.
    fn set_filter(&mut self, typed: &str) {
        if let Ok(filter) = Filter::parse(typed) {
            self.filter = (typed.to_owned(), filter);
            self.first = 0;
        }
    }

    fn step(&mut self, by: isize) {
        let Some(fleet) = self.fleet.clone() else {
            return;
        };
        let rows = Rows::new(&fleet);
        let lines = self.list_nodes(&rows);
        let last = lines.len().saturating_sub(1);
        let at = match self.place(&lines) {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by == isize::MAX => last,
            None => self.first.min(last),
        };
        let line = lines.get(at);
        self.selected = line.map(|line| rows.node_name(line.node).to_owned());
    }

    /// Returns `true` if the shown data is no longer current.
    pub(super) fn is_outdated(&self) -> bool {
        self.fleet
            .as_ref()
            .is_some_and(|fleet| fleet.state == FleetState::Outdated)
    }
}

fn beside<T: Copy + PartialEq>(all: &[T], at: T, by: isize) -> T {
    let place = all.iter().position(|one| *one == at).unwrap_or(0);
    all[(place.cast_signed() + by)
        .rem_euclid(all.len().cast_signed())
        .cast_unsigned()]
}
