//! The effects of all actions.

use gpumon_probe::model::Process;

use super::{App, Next, scrolled};
use crate::{
    describe::Level,
    moment::{Beside, Moment},
    top::{
        dialog::{Dialog, Help, Menu, Page, ProcessScreen, Setup},
        feed::Feed,
        history::DEPTH_MS,
        inspect,
        keys::Action,
        model::Origin,
        processes::{Column, Filter, Key, Subject},
        prompt::{Prompt, Purpose},
        replay,
        settings::RANGES_S,
        view::{Room, View},
    },
};

pub(super) const SELECT_FIRST: &str = "select a process first, with the arrow keys or the mouse";
const SKIP_MS: i64 = 30_000;
const PAGE: isize = 10;

impl App {
    pub(in crate::top) fn act(&mut self, action: Action) -> Next {
        let state = &mut self.state;
        match action {
            Action::Quit => return Next::Quit,
            Action::Suspend => return Next::Suspend,
            Action::Redraw => return Next::DrawAnew,
            Action::Help => self.dialog = Some(Dialog::Help(Help::default())),
            // The screen of a node was opened from the fleet screen, which appears again after
            // quitting.
            Action::Back => {
                if !self.back() && self.model.origin == Origin::Node {
                    return Next::Quit;
                }
            }
            Action::Move(by) => self.step(by),
            Action::PageUp => self.step(-PAGE),
            Action::PageDown => self.step(PAGE),
            Action::First => self.step(isize::MIN + 1),
            Action::Last => self.step(isize::MAX),
            Action::NextGpu | Action::PreviousGpu => {
                let gpus: Vec<u32> = self.model.gpus().iter().map(|gpu| gpu.index).collect();
                state.step_gpu(&gpus, action == Action::NextGpu);
                if let Some(place) = state
                    .gpu
                    .and_then(|gpu| gpus.iter().position(|known| *known == gpu))
                {
                    state.gpu_scroll = place.saturating_sub(3);
                }
            }
            Action::NextView | Action::PreviousView => {
                self.show(self.state.view.step(action == Action::NextView));
            }
            Action::View(place) => self.show(View::ALL[place]),
            Action::Room => state.room = state.room.next(),
            Action::NextMetric => state.metric = (state.metric + 1) % state.metrics.len().max(1),
            Action::PreviousMetric => {
                state.metric =
                    (state.metric + state.metrics.len() - 1) % state.metrics.len().max(1);
            }
            Action::ChooseMetrics => {
                self.dialog = Some(Dialog::Setup(Setup::new(Page::Charts, state)));
            }
            Action::Setup => self.dialog = Some(Dialog::Setup(Setup::new(Page::Columns, state))),
            Action::LongerRange => self.reach_further(),
            Action::ShorterRange => state.range = state.range.saturating_sub(1),
            Action::NextSort => self.step_sort(),
            Action::ChooseSort => self.dialog = Some(Dialog::Menu(Menu::of_columns(state))),
            Action::ChooseUser => {
                self.dialog = Some(Dialog::Menu(Menu::of_users(&self.model, state)));
            }
            Action::Reverse => state.processes.descending = !state.processes.descending,
            Action::Tree => state.processes.tree = !state.processes.tree,
            Action::Filter => {
                self.prompt = Some(Prompt::new(Purpose::Filter, &state.processes.filter.text));
            }
            Action::Search => self.prompt = Some(Prompt::new(Purpose::Search, "")),
            Action::FindNext | Action::FindPrevious => {
                if self.state.processes.search.is_empty() {
                    self.state
                        .tell(Level::Warn, "nothing was searched for: / searches");
                } else if !self.find(action == Action::FindNext, false) {
                    self.state.tell(Level::Warn, "it was not found");
                }
            }
            Action::Details | Action::Environment => {
                self.open_process(action == Action::Environment);
            }
            Action::Signal(kill) => self.ask_to_send(kill),
            Action::Faster | Action::Slower => self.change_interval(action == Action::Faster),
            Action::Theme => {
                let next = state.theme_name.next(state.background);
                state.set_theme(next);
                state.tell(Level::Note, format!("theme: {}; W saves it", next.id()));
            }
            Action::Save => self.save(),
            Action::TagOrPause => match self.selected() {
                Some((key, _)) => {
                    self.state.processes.toggle_tag(key);
                    self.step(1);
                }
                None => return self.act(Action::Pause),
            },
            Action::ClearTags => state.processes.tags.clear(),
            Action::Pause if self.player().is_none() => self.pause_or_resume(),
            Action::Pause
            | Action::StepForward
            | Action::StepBack
            | Action::SpeedUp
            | Action::SlowDown
            | Action::SkipForward
            | Action::SkipBack
            | Action::Goto => self.replay(action),
        }
        Next::Draw
    }

    fn reach_further(&mut self) {
        let next = (self.state.range + 1).min(RANGES_S.len() - 1);
        if RANGES_S[next] * 1000 > DEPTH_MS
            && !matches!(self.model.origin, Origin::Server | Origin::Node)
        {
            return self.state.tell(
                Level::Note,
                "charts over more than an hour need a server: start `gpumon serve`",
            );
        }
        self.state.range = next;
    }

    pub(super) fn show(&mut self, view: View) {
        self.state.view = view;
        self.state.view_scroll = 0;
    }

    /// Undoes the last narrowing. Returns `false` if there is nothing to undo.
    fn back(&mut self) -> bool {
        let state = &mut self.state;
        if state.notice.take().is_some() {
        } else if !state.processes.filter.is_empty() {
            state.processes.filter = Filter::default();
        } else if !state.processes.search.is_empty() {
            state.processes.search.clear();
        } else if !state.processes.tags.is_empty() {
            state.processes.tags.clear();
        } else if state.gpu.is_some() {
            state.gpu = None;
        } else {
            return state.processes.selected.take().is_some();
        }
        true
    }

    /// Moves the selection, or scrolls the view if no list is shown.
    pub(super) fn step(&mut self, by: isize) {
        if self.state.room == Room::View {
            self.state.view_scroll = scrolled(self.state.view_scroll, by);
            return;
        }
        let rows = self.state.processes.rows(&self.model, self.state.gpu);
        self.state.processes.step(&rows, by);
    }

    fn step_sort(&mut self) {
        let columns = &self.state.processes.columns;
        let at = columns
            .iter()
            .position(|column| *column == self.state.processes.sort)
            .unwrap_or(0);
        let next = columns[(at + 1) % columns.len()];
        self.sort_by(next);
    }

    /// Sorts by a column in its natural direction, or reverses the direction if the list is already
    /// sorted by that column.
    pub(super) fn sort_by(&mut self, column: Column) {
        let list = &mut self.state.processes;
        list.descending = if list.sort == column {
            !list.descending
        } else {
            column.falls_by_nature()
        };
        list.sort = column;
    }

    fn change_interval(&mut self, faster: bool) {
        if self.model.origin == Origin::Recording {
            return self.state.tell(
                Level::Warn,
                "a replay keeps the interval it was recorded at: > and < change its speed",
            );
        }
        self.state.step_interval(faster);
        let ms = self.state.interval_ms;
        self.feed
            .set_interval(std::time::Duration::from_millis(ms.into()));
        self.state
            .tell(Level::Note, format!("a sample every {ms} ms"));
    }

    fn save(&mut self) {
        let settings = self.state.settings(&self.settings);
        let Some(file) = &self.file else {
            return self.state.tell(
                Level::Act,
                "there is no place for settings: set HOME, or name a file with --config",
            );
        };
        match settings.write(file) {
            Ok(()) => self
                .state
                .tell(Level::Note, format!("saved in {}", file.display())),
            Err(error) => {
                let cure = "choose another file with --config";
                self.state.tell(
                    Level::Act,
                    format!("not saved in {}: {error}; {cure}", file.display()),
                );
            }
        }
    }

    /// Pauses or resumes the screen. While paused, updates go to a hidden model, so that the
    /// history has no gap afterwards.
    fn pause_or_resume(&mut self) {
        if let Some(live) = self.behind.take() {
            self.model = live;
            self.state.processes.drop_old_tags(&self.model);
        } else {
            self.behind = Some(self.model.clone());
            self.model.paused = true;
        }
    }

    fn replay(&mut self, action: Action) {
        let Feed::Recording(player) = &mut self.feed else {
            return self.state.tell(
                Level::Warn,
                "this key works only in a replay: gpumon replay FILE",
            );
        };
        let updates = match action {
            Action::Goto => {
                self.prompt = Some(Prompt::new(Purpose::Goto, ""));
                return;
            }
            Action::SpeedUp | Action::SlowDown => {
                player.change_speed(action == Action::SpeedUp);
                return;
            }
            Action::StepForward | Action::StepBack => player.step(action == Action::StepForward),
            Action::SkipForward => player.skip(SKIP_MS),
            Action::SkipBack => player.skip(-SKIP_MS),
            _ => player.pause_or_go_on(),
        };
        let updates = replay::updates(updates);
        self.played(updates);
    }

    /// Jumps to a time. A time of day is its first occurrence in the recording.
    pub(super) fn go_to(&mut self, text: &str) {
        let Ok(moment) = text.parse::<Moment>() else {
            return self.state.tell(
                Level::Warn,
                format!("'{text}' is not a time: give HH:MM or HH:MM:SS"),
            );
        };
        let Feed::Recording(player) = &mut self.feed else {
            return;
        };
        let (_, first, last) = player.times_ms();
        let at_ms = moment.resolve(&Beside::recording((first, last)));
        match at_ms
            .ok()
            .filter(|at_ms| *at_ms <= last.saturating_add(1000))
        {
            Some(at_ms) => {
                let updates = replay::updates(player.seek_to(at_ms));
                self.played(updates);
            }
            None => self
                .state
                .tell(Level::Warn, format!("{text} is not in this recording")),
        }
    }

    pub(super) fn selected(&self) -> Option<(Key, &Process)> {
        let selected = self.state.processes.selected?;
        let rows = self.state.processes.rows(&self.model, self.state.gpu);
        rows.into_iter().find_map(|row| match row.subject {
            Subject::Process(process) if row.key() == Some(selected) => Some((selected, process)),
            _ => None,
        })
    }

    /// Opens the screen of the selected process.
    pub(super) fn open_process(&mut self, at_environment: bool) {
        let Some((key, process)) = self.selected() else {
            return self.state.tell(Level::Warn, SELECT_FIRST);
        };
        let mut screen = ProcessScreen::new(key, process.clone(), at_environment);
        screen.follow(&self.model);
        if let Some(why) = self.not_of_this_machine() {
            screen.found = Some(Err(why.to_owned()));
        } else {
            screen.is_asked = true;
            inspect::ask(
                key.pid,
                key.started_ms,
                self.missing(key),
                self.inputs.clone(),
            );
        }
        self.dialog = Some(Dialog::Process(Box::new(screen)));
    }

    /// Reads the facts of the open process again with every sample, unless the previous request is
    /// still unanswered.
    pub(super) fn look_again(&mut self) {
        let is_own = self.model.origin == Origin::Driver;
        let inputs = self.inputs.clone();
        if let Some(screen) = self.process_screen()
            && matches!(screen.found, Some(Ok(_)))
            && !screen.is_asked
        {
            screen.is_asked = true;
            let Key {
                pid, started_ms, ..
            } = screen.key;
            inspect::ask(
                pid,
                started_ms,
                describe_missing(is_own, started_ms),
                inputs,
            );
        }
    }

    /// Returns the screen of a process, even if a confirmation dialog covers it.
    pub(super) fn process_screen(&mut self) -> Option<&mut ProcessScreen> {
        match self.covered.as_mut().or(self.dialog.as_mut()) {
            Some(Dialog::Process(screen)) => Some(screen),
            _ => None,
        }
    }

    pub(super) fn missing(&self, key: Key) -> &'static str {
        describe_missing(self.model.origin == Origin::Driver, key.started_ms)
    }

    /// Returns why processes on the screen can be neither inspected nor signaled, if so.
    pub(super) fn not_of_this_machine(&self) -> Option<&'static str> {
        match () {
            () if self.model.origin == Origin::Node => {
                Some("this process is on a node: run `gpumon top` there")
            }
            () if self.model.is_recording() => {
                Some("this is a recording: the process is not there now")
            }
            () if self.model.is_simulated() => Some("this process is simulated"),
            () => None,
        }
    }
}

/// Describes why `/proc` lacks a process. A process that this program itself found there has ended.
/// The driver and a server also list processes of other PID namespaces.
fn describe_missing(was_found_here: bool, started_ms: Option<u64>) -> &'static str {
    match (was_found_here, started_ms) {
        (true, Some(_)) => "has ended",
        (false, Some(_)) => "has ended, or runs in another PID namespace (a container or the host)",
        (_, None) => "runs in another PID namespace (a container or the host), or has ended",
    }
}
