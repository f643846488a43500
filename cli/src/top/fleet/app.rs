//! The state of the fleet screen, and its handling of keys and mouse.

use std::sync::Arc;

use clap::ValueEnum as _;
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
    keys::{self, Action},
    live_node::{LiveNode, Opener},
    node_views::Metric,
};
use crate::{
    fleet::{
        filter::Filter,
        nodes::{FleetLine, Sort, list_nodes},
    },
    terminal::screen::Glyphs,
    top::{
        input::Input,
        layout::step_in_cycle,
        main_loop::NextStep,
        panel::{Prompt, PromptPurpose, PromptResult},
        theme::{Background, Theme, ThemeName},
    },
};

/// How the nodes are arranged on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NodeArrangement {
    /// A list with one line per node.
    #[default]
    List,
    /// A map with as many nodes as fit on the screen.
    Map,
}

pub(super) struct FleetApp {
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) view: NodeArrangement,
    pub(super) metric: Metric,
    pub(super) sort: Sort,
    /// The filter as it was typed, and the parsed filter.
    pub(super) filter: (String, Filter),
    pub(super) prompt: Option<Prompt>,
    /// The name of the selected node. The node stays selected when the order changes.
    pub(super) selected: Option<String>,
    /// Whether the selected node is open. Until its live screen is ready, the fleet's data about
    /// the node is shown.
    pub(super) is_open: bool,
    /// The live screen of the selected node.
    pub(super) node: Option<LiveNode>,
    pub(super) refusal: String,
    opener: Opener,
    /// The index of the first visible node.
    pub(super) first: usize,
    pub(super) room: NodeCapacity,
    pub(super) has_help: bool,
    pub(super) theme_name: ThemeName,
    pub(super) theme: Theme,
    background: Background,
    pub(super) glyphs: Glyphs,
    /// The clickable areas, each with the name of its node.
    pub(super) hits: Vec<(Rect, String)>,
}

/// How many nodes fit on the screen and into one of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeCapacity {
    pub(super) nodes: usize,
    pub(super) in_a_row: usize,
}

impl FleetApp {
    pub(super) fn new(opener: Opener) -> Self {
        let (theme, glyphs) = (opener.theme, opener.glyphs);
        Self {
            fleet: None,
            view: NodeArrangement::default(),
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
            room: NodeCapacity {
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
    pub(super) fn list_nodes<'a>(&self, rows: &'a Rows<'a>) -> Vec<FleetLine<'a>> {
        list_nodes(rows, self.filter.1.select_rows(rows).as_deref(), self.sort)
    }

    /// Returns the position of the selected node in the list of visible nodes.
    pub(super) fn selected_position(&self, lines: &[FleetLine<'_>]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        lines
            .iter()
            .position(|line| line.rows.node_name(line.node) == selected)
    }

    /// Opens the selected node. If the node is already open, connects to its server again.
    fn open_selected_node(&mut self) {
        let Some(selected) = &self.selected else {
            return;
        };
        self.is_open = true;
        self.refusal.clear();
        match self
            .opener
            .open_node(selected, self.theme_name, self.background)
        {
            Ok(node) => self.node = Some(node),
            Err(error) => {
                self.refusal =
                    format!("{selected} cannot be opened: {error}; close other programs");
            }
        }
    }

    /// Handles an input for a node's screen. If the node cannot be shown, the reason is shown
    /// instead.
    pub(super) fn handle_node_input(&mut self, number: u64, input: Input) -> NextStep {
        let Some(node) = &mut self.node else {
            return NextStep::Wait;
        };
        node.handle_input(number, input).unwrap_or_else(|why| {
            (self.node, self.refusal) = (None, why);
            NextStep::Draw
        })
    }

    pub(super) fn live_node(&mut self) -> Option<&mut LiveNode> {
        self.node.as_mut().filter(|node| node.is_shown)
    }

    /// Sets the terminal's background, on which some themes depend.
    pub(super) fn set_background(&mut self, background: Background) {
        self.background = background;
        self.theme = Theme::new(self.theme_name.resolve(background));
        if let Some(node) = &mut self.node {
            node.app.state.set_background(background);
        }
    }

    pub(super) fn handle_terminal_event(&mut self, event: &Event) -> NextStep {
        if let Some(node) = self.live_node() {
            let next = node.app.handle_terminal_event(event);
            let is_end =
                matches!(event, Event::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL));
            if next != NextStep::Quit || is_end {
                return next;
            }
            (self.node, self.is_open) = (None, false);
            return NextStep::Draw;
        }
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(*key),
            Event::Mouse(mouse) => self.handle_mouse(*mouse),
            _ => NextStep::Wait,
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> NextStep {
        if let Some(prompt) = &mut self.prompt {
            match prompt.handle_key(key) {
                PromptResult::Nothing => return NextStep::Wait,
                PromptResult::Changed => {
                    let text = prompt.text.clone();
                    self.set_filter(&text);
                }
                PromptResult::Done => self.prompt = None,
                PromptResult::Canceled => {
                    self.prompt = None;
                    self.set_filter("");
                }
            }
            return NextStep::Draw;
        }
        let action = keys::find_action(key);
        if self.has_help && !matches!(action, Some(Action::Quit) if key.code != KeyCode::Char('q'))
        {
            self.has_help = false;
            return NextStep::Draw;
        }
        action.map_or(NextStep::Wait, |action| self.apply_action(action))
    }

    fn handle_mouse(&mut self, mouse: MouseEvent) -> NextStep {
        match mouse.kind {
            MouseEventKind::ScrollDown => self.apply_action(Action::Row(1)),
            MouseEventKind::ScrollUp => self.apply_action(Action::Row(-1)),
            MouseEventKind::Down(MouseButton::Left) => {
                let at = Position {
                    x: mouse.column,
                    y: mouse.row,
                };
                let Some((_, node)) = self.hits.iter().rev().find(|(area, _)| area.contains(at))
                else {
                    return NextStep::Wait;
                };
                let is_again = self.selected.as_ref() == Some(node);
                self.selected = Some(node.clone());
                if is_again {
                    self.open_selected_node();
                }
                NextStep::Draw
            }
            _ => NextStep::Wait,
        }
    }

    fn apply_action(&mut self, action: Action) -> NextStep {
        match action {
            Action::Quit => return NextStep::Quit,
            Action::Suspend => return NextStep::Suspend,
            Action::Redraw => return NextStep::DrawAnew,
            Action::Help => self.has_help = true,
            Action::Back if self.is_open => (self.node, self.is_open) = (None, false),
            Action::Back => self.set_filter(""),
            Action::Open => self.open_selected_node(),
            Action::Move(by) => self.move_selection(by),
            Action::Row(by) => self.move_selection(by * self.room.in_a_row.cast_signed()),
            Action::Page(by) => self.move_selection(by * self.room.nodes.max(1).cast_signed()),
            Action::First => self.move_selection(isize::MIN),
            Action::Last => self.move_selection(isize::MAX),
            Action::NextView => {
                self.view = if self.view == NodeArrangement::List {
                    NodeArrangement::Map
                } else {
                    NodeArrangement::List
                };
            }
            Action::NextMetric | Action::PreviousMetric => {
                let forward = action == Action::NextMetric;
                self.metric = step_in_cycle(&Metric::ALL, self.metric, forward);
            }
            Action::NextSort | Action::PreviousSort => {
                let forward = action == Action::NextSort;
                self.sort = step_in_cycle(Sort::value_variants(), self.sort, forward);
            }
            Action::Filter => self.prompt = Some(Prompt::new(PromptPurpose::Fleet, &self.filter.0)),
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
        NextStep::Draw
    }

    /// Applies the typed filter. If the typed filter is invalid, the previous filter is kept, and
    /// the prompt shows the reason.
    fn set_filter(&mut self, typed: &str) {
        if let Ok(filter) = Filter::parse(typed) {
            self.filter = (typed.to_owned(), filter);
            self.first = 0;
        }
    }

    fn move_selection(&mut self, by: isize) {
        let Some(fleet) = self.fleet.clone() else {
            return;
        };
        let rows = Rows::new(&fleet);
        let lines = self.list_nodes(&rows);
        let last = lines.len().saturating_sub(1);
        let at = match self.selected_position(&lines) {
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
