//! The screen of a single process: its live resource usage and its details.

mod charts;
mod facts;
mod secrets;

use gpumon_probe::model::Process;
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::{Constraint, Layout, Rect},
    widgets::{Clear, Widget},
};

use self::charts::ProcessHistory;
pub(in crate::top) use self::facts::process_name;
use super::{KeyEffect, Scroll, draw_scrolled_lines};
use crate::top::{
    history::DEPTH_MS,
    inspect::{Inspection, ProcessAttributes},
    keys::{self, Action},
    model::Model,
    painter::{Hit, Painter},
    panel,
    processes::ProcessKey,
    state::State,
};

#[allow(clippy::struct_excessive_bools)]
pub(in crate::top) struct ProcessScreen {
    pub(in crate::top) key: ProcessKey,
    /// The process as it was in the last sample that contained it.
    process: Process,
    is_there: bool,
    /// The attributes read from `/proc` or the error, or `None` until they have been read.
    pub(in crate::top) found: Option<Result<ProcessAttributes, String>>,
    pub(in crate::top) is_asked: bool,
    past: ProcessHistory,
    are_secrets_shown: bool,
    /// Whether the screen should scroll to the environment as soon as it has been read.
    seeks_environment: bool,
    pub(super) scroll: Scroll,
}

impl ProcessScreen {
    pub(in crate::top) fn new(key: ProcessKey, process: Process, seeks_environment: bool) -> Self {
        Self {
            key,
            process,
            is_there: true,
            found: None,
            is_asked: false,
            past: ProcessHistory::default(),
            are_secrets_shown: false,
            seeks_environment,
            scroll: Scroll::default(),
        }
    }

    /// Updates the process from the newest sample if the sample contains it.
    pub(in crate::top) fn update(&mut self, model: &Model) {
        let now = model
            .find_gpu(self.key.gpu)
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
        self.past.push_sample(model, self.key.gpu, now);
    }

    pub(in crate::top) fn apply_inspection(&mut self, inspection: Inspection, interval_ms: u32) {
        self.is_asked = false;
        if let Ok(facts) = &inspection.found {
            self.past.push_attributes(facts, interval_ms);
        }
        self.found = Some(inspection.found);
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> KeyEffect {
        match key.code {
            KeyCode::Char('s') => self.are_secrets_shown = !self.are_secrets_shown,
            KeyCode::Char('e') => self.seeks_environment = true,
            KeyCode::Enter | KeyCode::Char('i') => return KeyEffect::Leave,
            _ if self.scroll.handle_key(key) => {}
            _ => {
                if let Some(
                    action @ (Action::Signal(_) | Action::LongerRange | Action::ShorterRange),
                ) = keys::find_action(key)
                {
                    return KeyEffect::Act(action);
                }
            }
        }
        KeyEffect::Stay
    }

    pub(super) fn draw(
        &mut self,
        painter: &mut Painter<'_>,
        screen: Rect,
        model: &Model,
        state: &State,
    ) {
        // The title of the main screen stays visible, because it shows whether values are
        // simulated, delayed, or paused.
        let [_, heading, between, footer] =
            Layout::vertical([1, 1, screen.height.saturating_sub(3), 1].map(Constraint::Length))
                .areas(screen);
        let all = Rect {
            height: screen.height - 1,
            ..heading
        };
        Clear.render(all, painter.buffer);
        painter.highlight(all, painter.theme.plain);
        painter.add_hit(screen, Hit::Dialog(0));
        let theme = painter.theme;
        let title = format!("{}: {}", self.process.pid, process_name(&self.process));
        painter.draw_pieces(
            heading.x,
            heading.y,
            heading.width,
            &[("Process ", theme.dim), (&title, theme.strong)],
        );
        // After the process has ended, the charts remain visible and show its history.
        let height = (between.height * 2 / 5).max(4).min(between.height);
        let [above, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Min(0)]).areas(between);
        // The recorded history starts when the screen of the process is opened.
        charts::draw_process_charts(painter, above, self, model, state.span_ms().min(DEPTH_MS));
        let (lines, environment) = facts::format_details(painter, below.width, self, model);
        if self.seeks_environment && environment.is_some() {
            self.seeks_environment = false;
            self.scroll = Scroll(environment.unwrap_or(0));
        }
        if !panel::draw_notice(painter, footer, state) {
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
            painter.draw_pieces(footer.x, footer.y, footer.width, keys.as_flattened());
        }
        draw_scrolled_lines(painter, below, &lines, &mut self.scroll, footer);
    }
}
