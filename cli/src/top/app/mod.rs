//! The state of the live screen, and the handling of all inputs. [`actions`] contains the effects
//! of keys, and [`signals`] sends signals to processes.

mod actions;
mod signals;

use std::{
    path::PathBuf,
    sync::mpsc::SyncSender,
    time::{Duration, Instant},
};

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::Record;
use gpumon_recording::Player;
use ratatui::{
    crossterm::event::{Event, KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind},
    layout::{Position, Rect},
};

use self::signals::SentSignal;
use super::{
    dialog::{Dialog, KeyEffect},
    feed::{self, Feed, PastReader},
    input::Input,
    inspect,
    keys::{self, Action},
    main_loop::NextStep,
    model::{Model, Update},
    painter::Hit,
    panel::{Prompt, PromptPurpose, PromptResult},
    processes::Filter,
    settings::Settings,
    state::State,
    text::format_date_and_time,
};
use crate::describe::Level;

/// The interval at which the screen checks for changes that depend on time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct App {
    pub(super) model: Model,
    /// The hidden model that receives updates while the screen is paused.
    behind: Option<Model>,
    pub(super) state: State,
    pub(super) dialog: Option<Dialog>,
    /// The dialog below the current dialog. It is shown again when the current dialog is closed.
    pub(super) covered: Option<Dialog>,
    pub(super) prompt: Option<Prompt>,
    feed: Feed,
    /// The reader for longer histories, if the server stores them.
    pub(super) past: Option<PastReader>,
    /// The time range of the charts, in milliseconds, when the user was last notified of a short or
    /// missing history.
    notified_span_ms: u64,
    /// The settings as read at the start. The field below is the file to which they are saved, or
    /// `None` if no location is known.
    settings: Settings,
    file: Option<PathBuf>,
    /// The clickable areas of the last drawn frame.
    pub(super) hits: Vec<(Rect, Hit)>,
    last_click: Option<Click>,
    sent: Vec<SentSignal>,
    /// The names of signaled processes that have ended. They are collected while other signaled
    /// processes are still running.
    ended: Vec<String>,
    inputs: SyncSender<Input>,
    /// Whether sending signals is disabled.
    pub(super) is_readonly: bool,
}

impl App {
    pub(super) fn new(
        model: Model,
        state: State,
        feed: Feed,
        settings: Settings,
        file: Option<PathBuf>,
        inputs: SyncSender<Input>,
    ) -> Self {
        Self {
            model,
            behind: None,
            state,
            dialog: None,
            covered: None,
            prompt: None,
            feed,
            past: None,
            notified_span_ms: 0,
            settings,
            file,
            hits: Vec::new(),
            last_click: None,
            sent: Vec::new(),
            ended: Vec::new(),
            inputs,
            is_readonly: false,
        }
    }

    pub(super) fn player(&self) -> Option<&Player> {
        match &self.feed {
            Feed::Recording(player) => Some(player),
            Feed::Server(_) | Feed::Driver(_) => None,
        }
    }

    pub(super) fn poll_timeout(&self, now: Instant) -> Duration {
        let due = self.player().and_then(Player::next_due_time);
        due.map_or(POLL_INTERVAL, |due| {
            due.saturating_duration_since(now).min(POLL_INTERVAL)
        })
    }

    pub(super) fn tick(&mut self, now: Instant) -> NextStep {
        let mut changed = self.state.remove_expired_notice(now) | self.check_sent_signals(now);
        // While data is stale, the displayed age changes with every tick.
        changed |= self.model.is_stale();
        if let Some(past) = &mut self.past {
            past.request_history(self.state.chart_span_ms(), self.model.now_ms(), now);
        }
        if let Feed::Recording(player) = &mut self.feed {
            let updates = feed::convert_records(player.advance(now));
            changed |= self.apply_replay_updates(updates);
        }
        if changed {
            NextStep::Draw
        } else {
            NextStep::Wait
        }
    }

    pub(super) fn handle_terminal_event(&mut self, event: &Event) -> NextStep {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle_key(*key),
            Event::Mouse(mouse) => self.handle_mouse(*mouse),
            _ => NextStep::Wait,
        }
    }

    pub(super) fn apply_update(&mut self, update: Update) -> NextStep {
        // CPU usage, and records other than samples and events, are drawn together with the sample
        // that follows them.
        let next = match &update {
            Update::Usage(_) => NextStep::Wait,
            Update::Record(record) if !matches!(**record, Record::Sample(_) | Record::Event(_)) => {
                NextStep::Wait
            }
            _ => NextStep::Draw,
        };
        self.report_short_history(&update);
        if let Some(live) = &mut self.behind {
            // While the screen is paused, a server's history is also added to the visible model,
            // because a pause does not change the past.
            let next = match &update {
                Update::Past(past) => {
                    self.model.ingest(Update::Past(past.clone()));
                    NextStep::Draw
                }
                Update::NoPast(_) => NextStep::Draw,
                _ => NextStep::Wait,
            };
            live.ingest(update);
            return next;
        }
        let is_sample = update.sample().is_some();
        self.model.ingest(update);
        if is_sample {
            self.refresh_process_attributes();
            self.update_process_screen();
            self.state.processes.drop_old_tags(&self.model);
        }
        next
    }

    /// Notifies the user that the server's history is shorter than the charts, and how to keep a
    /// longer history. The user is notified once per time range. Also reports if the server sent no
    /// history.
    fn report_short_history(&mut self, update: &Update) {
        let span_ms = self.state.chart_span_ms();
        let text = match update {
            Update::NoPast(why) => format!("the server sent no history: {why}"),
            Update::Past(past)
                if self.notified_span_ms != span_ms && is_history_short(past, span_ms) =>
            {
                let begin = format!("history begins at {}", format_date_and_time(past.oldest_ms));
                let cure = "; `gpumon serve --data-dir DIR` keeps a year of history";
                begin + if past.storage.on_disk { "" } else { cure }
            }
            _ => return,
        };
        self.notified_span_ms = span_ms;
        self.state.show_notice(Level::Note, text);
    }

    fn update_process_screen(&mut self) {
        if let Some(Dialog::Process(screen)) = self.covered.as_mut().or(self.dialog.as_mut()) {
            screen.update(&self.model);
        }
    }

    pub(super) fn apply_inspection(&mut self, inspection: inspect::Inspection) -> NextStep {
        let interval_ms = self.state.interval_ms;
        match self.process_screen() {
            Some(screen) if screen.key.pid == inspection.pid => {
                screen.apply_inspection(inspection, interval_ms);
                NextStep::Draw
            }
            _ => NextStep::Wait,
        }
    }

    fn handle_key(&mut self, key: KeyEvent) -> NextStep {
        if let Some(prompt) = &mut self.prompt {
            let typed = prompt.handle_key(key);
            return self.apply_prompt_result(typed);
        }
        if let Some(mut dialog) = self.dialog.take() {
            let ctrl_c = keys::find_action(key) == Some(Action::Quit)
                && !matches!(key.code, ratatui::crossterm::event::KeyCode::Char('q'));
            match dialog.handle_key(key, &mut self.state) {
                _ if ctrl_c => return NextStep::Quit,
                KeyEffect::Stay => self.dialog = Some(dialog),
                KeyEffect::Leave => self.dialog = self.covered.take(),
                KeyEffect::Yes => {
                    self.send_confirmed_signal(dialog);
                    self.dialog = self.covered.take();
                }
                KeyEffect::Act(action) => {
                    self.dialog = Some(dialog);
                    return self.apply_action(action);
                }
            }
            return NextStep::Draw;
        }
        if let Some(action) = keys::find_action(key) {
            return self.apply_action(action);
        }
        let Some(name) = keys::key_name(key) else {
            return NextStep::Wait;
        };
        self.state.show_notice(
            Level::Note,
            format!("{name} has no function: press ? for the list of keys"),
        );
        NextStep::Draw
    }

    fn apply_prompt_result(&mut self, typed: PromptResult) -> NextStep {
        let Some(prompt) = &self.prompt else {
            return NextStep::Wait;
        };
        // The prompt already shows the mistake next to the typed text, where the user can correct
        // it.
        if typed == PromptResult::Done && prompt.mistake().is_some() {
            return NextStep::Draw;
        }
        let (purpose, text) = (prompt.purpose, prompt.text.clone());
        match (typed, purpose) {
            (PromptResult::Nothing, _) => return NextStep::Wait,
            (PromptResult::Changed, PromptPurpose::Filter) => {
                self.state.processes.filter = Filter::new(&text);
            }
            (PromptResult::Changed, PromptPurpose::Search) => {
                self.state.processes.search = text;
                self.select_next_match(true, true);
            }
            (PromptResult::Canceled, PromptPurpose::Filter) => {
                self.state.processes.filter = Filter::default();
            }
            (PromptResult::Canceled, PromptPurpose::Search) => self.state.processes.search.clear(),
            (PromptResult::Changed | PromptResult::Canceled, PromptPurpose::Goto)
            | (PromptResult::Done, PromptPurpose::Filter)
            | (_, PromptPurpose::Fleet) => {}
            (PromptResult::Done, PromptPurpose::Search) => {
                if !text.is_empty() && !self.select_next_match(true, true) {
                    self.state
                        .show_notice(Level::Warn, format!("'{text}' was not found"));
                }
            }
            (PromptResult::Done, PromptPurpose::Goto) => self.jump_to_time(&text),
        }
        if matches!(typed, PromptResult::Done | PromptResult::Canceled) {
            self.prompt = None;
        }
        NextStep::Draw
    }

    fn select_next_match(&mut self, forward: bool, or_here: bool) -> bool {
        let rows = self.state.processes.list_rows(&self.model, self.state.gpu);
        self.state
            .processes
            .select_next_match(&rows, forward, or_here)
    }

    /// Applies updates from a recording. Returns `true` if there were any updates.
    fn apply_replay_updates(&mut self, updates: std::io::Result<Vec<Update>>) -> bool {
        let updates = updates.unwrap_or_else(|error| {
            vec![Update::Silent(format!(
                "the recording cannot be read: {error}"
            ))]
        });
        let any = !updates.is_empty();
        for update in updates {
            self.model.ingest(update);
        }
        if any {
            self.update_process_screen();
            self.state.processes.drop_old_tags(&self.model);
        }
        any
    }
}

/// Returns `true` if the server's history is visibly shorter than a chart of `span_ms`.
fn is_history_short(past: &HistorySpan, span_ms: u64) -> bool {
    past.oldest_ms
        .saturating_sub(past.to_ms.saturating_sub(span_ms))
        > span_ms / 50
}

/// Returns the scroll position after a move by `by` lines. It may be beyond the end of the list,
/// because the position is limited when the list is drawn.
fn move_scroll_position(at: usize, by: isize) -> usize {
    const MAX_POSITION: usize = 10_000;
    at.saturating_add_signed(by).min(MAX_POSITION)
}

// Mouse events.

/// Two clicks count as a double click if the time between them is at most this long.
const DOUBLE_CLICK_TIME: Duration = Duration::from_millis(400);
const WHEEL_LINES: isize = 3;

/// The clicked area and time of the last click.
struct Click {
    hit: Hit,
    at: Instant,
}

impl App {
    fn handle_mouse(&mut self, event: MouseEvent) -> NextStep {
        let place = Position {
            x: event.column,
            y: event.row,
        };
        // If areas overlap, the one that was drawn last is on top, so areas are checked from the
        // last to the first.
        let hit = self
            .hits
            .iter()
            .rev()
            .find(|(area, _)| area.contains(place))
            .map(|(_, hit)| *hit);
        let Some(hit) = hit else {
            return NextStep::Wait;
        };
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) => self.handle_click(hit),
            MouseEventKind::ScrollDown => self.handle_wheel(hit, WHEEL_LINES),
            MouseEventKind::ScrollUp => self.handle_wheel(hit, -WHEEL_LINES),
            _ => NextStep::Wait,
        }
    }

    fn handle_click(&mut self, hit: Hit) -> NextStep {
        let before = self.last_click.replace(Click {
            hit,
            at: Instant::now(),
        });
        let is_double = before
            .is_some_and(|before| before.hit == hit && before.at.elapsed() < DOUBLE_CLICK_TIME);
        match hit {
            Hit::Dialog(line) => match &mut self.dialog {
                Some(Dialog::Setup(setup)) if line != usize::MAX => {
                    if let KeyEffect::Act(action) = setup.handle_click(line, &mut self.state) {
                        return self.apply_action(action);
                    }
                }
                Some(Dialog::Menu(menu)) if line != usize::MAX => {
                    menu.apply_choice(line, &mut self.state);
                    self.dialog = None;
                }
                // The signal dialog and the process screen close only on a click outside of them.
                // Confirming a signal requires a key.
                Some(Dialog::Signal(_) | Dialog::Process(_)) => {}
                _ if line == usize::MAX => self.dialog = None,
                _ => {}
            },
            Hit::Gpu(gpu) => {
                self.state.gpu = if self.state.gpu == Some(gpu) {
                    None
                } else {
                    Some(gpu)
                };
                self.state.view_scroll = 0;
            }
            Hit::Tab(view) => self.show_view(view),
            Hit::Heading(column) => self.sort_by(column),
            Hit::Process(key) => {
                self.state.processes.selected = Some(key);
                if is_double {
                    self.open_process_screen(false);
                }
            }
            Hit::Page(page) => {
                if let Some(Dialog::Setup(setup)) = &mut self.dialog {
                    setup.show_page(page);
                }
            }
            Hit::Do(action) => return self.apply_action(action),
            Hit::Gpus | Hit::Middle | Hit::Processes => return NextStep::Wait,
        }
        NextStep::Draw
    }

    fn handle_wheel(&mut self, hit: Hit, by: isize) -> NextStep {
        let state = &mut self.state;
        match hit {
            Hit::Dialog(_) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.scroll_by(by);
                }
            }
            Hit::Gpus | Hit::Gpu(_) => {
                state.gpu_scroll =
                    move_scroll_position(state.gpu_scroll, by).min(self.model.gpus().len());
            }
            Hit::Middle => state.view_scroll = move_scroll_position(state.view_scroll, by),
            Hit::Process(_) | Hit::Processes | Hit::Heading(_)
                if state.processes.selected.is_none() =>
            {
                state.processes.scroll = move_scroll_position(state.processes.scroll, by);
            }
            Hit::Process(_) | Hit::Processes | Hit::Heading(_) => self.move_selection(by),
            Hit::Tab(_) | Hit::Do(_) | Hit::Page(_) => return NextStep::Wait,
        }
        NextStep::Draw
    }
}

#[cfg(test)]
pub(super) mod tests;
