//! The screen of one process: its live resource usage and its details.

mod charts;
mod facts;
mod secrets;

use gpumon_probe::model::Process;
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::{Constraint, Layout, Rect},
    widgets::{Clear, Widget},
};

use self::charts::Past;
pub(in crate::top) use self::facts::name;
use super::{Answer, Scroll, scrolled_lines};
use crate::top::{
    history::DEPTH_MS,
    inspect::{Facts, Inspection},
    keys::{self, Action},
    model::Model,
    painter::{Hit, Painter},
    panel,
    processes::Key,
    state::State,
};

#[allow(clippy::struct_excessive_bools)]
pub(in crate::top) struct ProcessScreen {
    pub(in crate::top) key: Key,
    /// The process as in the last sample that contained it.
    process: Process,
    is_there: bool,
    /// The facts from `/proc`, or `None` until they have been read.
    pub(in crate::top) found: Option<Result<Facts, String>>,
    pub(in crate::top) is_asked: bool,
    past: Past,
    are_secrets_shown: bool,
    /// Whether to scroll to the environment as soon as it has been read.
    seeks_environment: bool,
    pub(super) scroll: Scroll,
}

impl ProcessScreen {
    pub(in crate::top) fn new(key: Key, process: Process, seeks_environment: bool) -> Self {
        Self {
            key,
            process,
            is_there: true,
            found: None,
            is_asked: false,
            past: Past::default(),
            are_secrets_shown: false,
            seeks_environment,
            scroll: Scroll::default(),
        }
    }

    /// Updates the process from the newest sample.
    pub(in crate::top) fn follow(&mut self, model: &Model) {
        let now = model
            .gpu(self.key.gpu)
            .and_then(|gpu| gpu.processes.value());
        let is_it = |process: &&Process| {
            process.pid == self.key.pid
                && process.mig == self.key.mig
                && process.started_ms.value().copied() == self.key.started_ms
        };
        let now = now.and_then(|all| all.iter().find(is_it));
        self.is_there = now.is_some();
        if let Some(process) = now {
            self.process = process.clone();
        }
        self.past.follow(model, self.key.gpu, now);
    }

    pub(in crate::top) fn inspected(&mut self, inspection: Inspection, interval_ms: u32) {
        self.is_asked = false;
        if let Ok(facts) = &inspection.found {
            self.past.inspected(facts, interval_ms);
        }
        self.found = Some(inspection.found);
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        match key.code {
            KeyCode::Char('s') => self.are_secrets_shown = !self.are_secrets_shown,
            KeyCode::Char('e') => self.seeks_environment = true,
            KeyCode::Enter | KeyCode::Char('i') => return Answer::Leave,
            _ if self.scroll.key(key) => {}
            _ => {
                if let Some(
                    action @ (Action::Signal(_) | Action::LongerRange | Action::ShorterRange),
                ) = keys::action(key)
                {
                    return Answer::Act(action);
                }
            }
        }
        Answer::Stay
    }

    pub(super) fn draw(
        &mut self,
        painter: &mut Painter<'_>,
        screen: Rect,
        model: &Model,
        state: &State,
    ) {
        // The title stays visible, because it shows whether the values are simulated, late, or
        // paused.
        let [_, heading, between, footer] =
            Layout::vertical([1, 1, screen.height.saturating_sub(3), 1].map(Constraint::Length))
                .areas(screen);
        let all = Rect {
            height: screen.height - 1,
            ..heading
        };
        Clear.render(all, painter.buffer);
        painter.highlight(all, painter.theme.plain);
        painter.hit(screen, Hit::Dialog(0));
        let theme = painter.theme;
        let title = format!("{}: {}", self.process.pid, name(&self.process));
        painter.line(
            heading.x,
            heading.y,
            heading.width,
            &[("Process ", theme.dim), (&title, theme.strong)],
        );
        // The charts remain after the process has ended, to show its past.
        let height = (between.height * 2 / 5).max(4).min(between.height);
        let [above, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(between);
        // The history of a process covers only the time since its screen was opened.
        charts::draw(painter, above, self, model, state.span_ms().min(DEPTH_MS));
        let (lines, environment) = facts::lines(painter, below.width, self, model);
        if self.seeks_environment && environment.is_some() {
            self.seeks_environment = false;
            self.scroll = Scroll(environment.unwrap_or(0));
        }
        if !panel::notice(painter, footer, state) {
            let secrets = if self.are_secrets_shown {
                "mask secrets"
            } else {
                "show secrets"
            };
            let keys = [
                ("esc", "back"),
                ("s", secrets),
                ("e", "environment"),
                ("T I K", "signal"),
                ("[ ]", "range"),
            ];
            let keys = keys.map(|(key, what)| {
                [
                    (key, theme.strong),
                    (" ", theme.plain),
                    (what, theme.dim),
                    ("  ", theme.plain),
                ]
            });
            painter.line(footer.x, footer.y, footer.width, keys.as_flattened());
        }
        scrolled_lines(painter, below, &lines, &mut self.scroll, footer);
    }
}
