//! The state of the live screen, and the handling of all inputs.

mod act;
mod mouse;
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
    crossterm::event::{Event, KeyEvent, KeyEventKind},
    layout::Rect,
};

use self::{mouse::Click, signals::Sent};
use super::{
    dialog::{Answer, Dialog},
    feed::{Feed, PastReader},
    input::Input,
    inspect,
    keys::{self, Action},
    live::Next,
    model::{Model, Update},
    painter::Hit,
    processes::Filter,
    prompt::{Prompt, Purpose, Typed},
    replay,
    settings::Settings,
    state::State,
    text::date_and_clock,
};
use crate::describe::Level;

/// How often the screen checks for changes that depend on time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct App {
    pub(super) model: Model,
    /// The model that receives updates while the screen is paused.
    behind: Option<Model>,
    pub(super) state: State,
    pub(super) dialog: Option<Dialog>,
    /// The dialog below the current one, which returns when the current one closes.
    pub(super) covered: Option<Dialog>,
    pub(super) prompt: Option<Prompt>,
    feed: Feed,
    /// The reader of longer histories, if a server has them.
    pub(super) past: Option<PastReader>,
    /// The time range in milliseconds for which the reach of the server's history was last
    /// reported.
    told_span_ms: u64,
    /// The settings as read, and the file to save them to, or `None` if there is no location for
    /// it.
    settings: Settings,
    file: Option<PathBuf>,
    /// The clickable areas of the last frame.
    pub(super) hits: Vec<(Rect, Hit)>,
    last_click: Option<Click>,
    sent: Vec<Sent>,
    /// The signaled processes that have ended since the last time when none was running.
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
            told_span_ms: 0,
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

    pub(super) fn idle(&self, now: Instant) -> Duration {
        let due = self.player().and_then(Player::due);
        due.map_or(POLL_INTERVAL, |due| {
            due.saturating_duration_since(now).min(POLL_INTERVAL)
        })
    }

    pub(super) fn tick(&mut self, now: Instant) -> Next {
        let mut changed = self.state.forget_notice(now) | self.watch_sent(now);
        // The time since the last sample is displayed in seconds, so it changes with every tick.
        changed |= self.model.is_stale();
        if let Some(past) = &mut self.past {
            past.need(self.state.span_ms(), self.model.now_ms(), now);
        }
        if let Feed::Recording(player) = &mut self.feed {
            let updates = replay::updates(player.advance(now));
            changed |= self.played(updates);
        }
        if changed { Next::Draw } else { Next::Wait }
    }

    pub(super) fn terminal(&mut self, event: &Event) -> Next {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key),
            Event::Mouse(mouse) => self.mouse(*mouse),
            _ => Next::Wait,
        }
    }

    pub(super) fn update(&mut self, update: Update) -> Next {
        // A sample follows, and then everything is drawn at once.
        let next = match &update {
            Update::Usage(_) => Next::Wait,
            Update::Record(record) if !matches!(**record, Record::Sample(_) | Record::Event(_)) => {
                Next::Wait
            }
            _ => Next::Draw,
        };
        self.tell_reach(&update);
        if let Some(live) = &mut self.behind {
            // A pause does not change the past, so the history goes to the visible model, too.
            let next = match &update {
                Update::Past(past) => {
                    self.model.ingest(Update::Past(past.clone()));
                    Next::Draw
                }
                Update::NoPast(_) => Next::Draw,
                _ => Next::Wait,
            };
            live.ingest(update);
            return next;
        }
        let is_sample = update.sample().is_some();
        self.model.ingest(update);
        if is_sample {
            self.look_again();
            self.follow_process();
            self.state.processes.drop_old_tags(&self.model);
        }
        next
    }

    /// Reports, once per time range, that the server's history is shorter than the charts, and how
    /// to lengthen it.
    fn tell_reach(&mut self, update: &Update) {
        let span_ms = self.state.span_ms();
        let text = match update {
            Update::NoPast(why) => format!("the server tells no history: {why}"),
            Update::Past(past) if self.told_span_ms != span_ms && is_short(past, span_ms) => {
                let begin = format!("history begins at {}", date_and_clock(past.oldest_ms));
                let cure = "; `gpumon serve --data-dir DIR` keeps a year of it";
                begin + if past.storage.on_disk { "" } else { cure }
            }
            _ => return,
        };
        self.told_span_ms = span_ms;
        self.state.tell(Level::Note, text);
    }

    fn follow_process(&mut self) {
        if let Some(Dialog::Process(screen)) = self.covered.as_mut().or(self.dialog.as_mut()) {
            screen.follow(&self.model);
        }
    }

    pub(super) fn inspected(&mut self, inspection: inspect::Inspection) -> Next {
        let interval_ms = self.state.interval_ms;
        match self.process_screen() {
            Some(screen) if screen.key.pid == inspection.pid => {
                screen.inspected(inspection, interval_ms);
                Next::Draw
            }
            _ => Next::Wait,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Next {
        if let Some(prompt) = &mut self.prompt {
            let typed = prompt.key(key);
            return self.typed(typed);
        }
        if let Some(mut dialog) = self.dialog.take() {
            let ctrl_c = keys::action(key) == Some(Action::Quit)
                && !matches!(key.code, ratatui::crossterm::event::KeyCode::Char('q'));
            match dialog.key(key, &mut self.state) {
                _ if ctrl_c => return Next::Quit,
                Answer::Stay => self.dialog = Some(dialog),
                Answer::Leave => self.dialog = self.covered.take(),
                Answer::Yes => {
                    self.say_yes(dialog);
                    self.dialog = self.covered.take();
                }
                Answer::Act(action) => {
                    self.dialog = Some(dialog);
                    return self.act(action);
                }
            }
            return Next::Draw;
        }
        if let Some(action) = keys::action(key) {
            return self.act(action);
        }
        let Some(name) = keys::name(key) else {
            return Next::Wait;
        };
        self.state.tell(
            Level::Note,
            format!("{name} is not assigned: ? lists the keys"),
        );
        Next::Draw
    }

    fn typed(&mut self, typed: Typed) -> Next {
        let Some(prompt) = &self.prompt else {
            return Next::Wait;
        };
        // The prompt shows the mistake next to the text, so the user can correct it there.
        if typed == Typed::Done && prompt.mistake().is_some() {
            return Next::Draw;
        }
        let (purpose, text) = (prompt.purpose, prompt.text.clone());
        match (typed, purpose) {
            (Typed::Nothing, _) => return Next::Wait,
            (Typed::Changed, Purpose::Filter) => self.state.processes.filter = Filter::new(&text),
            (Typed::Changed, Purpose::Search) => {
                self.state.processes.search = text;
                self.find(true, true);
            }
            (Typed::Canceled, Purpose::Filter) => self.state.processes.filter = Filter::default(),
            (Typed::Canceled, Purpose::Search) => self.state.processes.search.clear(),
            (Typed::Changed | Typed::Canceled, Purpose::Goto)
            | (Typed::Done, Purpose::Filter)
            | (_, Purpose::Fleet) => {}
            (Typed::Done, Purpose::Search) => {
                if !text.is_empty() && !self.find(true, true) {
                    self.state
                        .tell(Level::Warn, format!("'{text}' was not found"));
                }
            }
            (Typed::Done, Purpose::Goto) => self.go_to(&text),
        }
        if matches!(typed, Typed::Done | Typed::Canceled) {
            self.prompt = None;
        }
        Next::Draw
    }

    fn find(&mut self, forward: bool, or_here: bool) -> bool {
        let rows = self.state.processes.rows(&self.model, self.state.gpu);
        self.state.processes.find(&rows, forward, or_here)
    }

    /// Applies updates of a recording. Returns `true` if there were any.
    fn played(&mut self, updates: std::io::Result<Vec<Update>>) -> bool {
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
            self.follow_process();
            self.state.processes.drop_old_tags(&self.model);
        }
        any
    }
}

/// Returns `true` if the server's history is visibly shorter than a chart of this range.
fn is_short(past: &HistorySpan, span_ms: u64) -> bool {
    past.oldest_ms
        .saturating_sub(past.to_ms.saturating_sub(span_ms))
        > span_ms / 50
}

/// Moves a scroll position. The code that draws the list limits the position to the end of the
/// list.
fn scrolled(at: usize, by: isize) -> usize {
    const MOST: usize = 10_000;
    at.saturating_add_signed(by).min(MOST)
}

#[cfg(test)]
pub(super) mod tests;
