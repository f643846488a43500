//! The effect of each action on the screen.

use clap::ValueEnum as _;
use gpumon_probe::model::Process;

use super::{App, NextStep, move_scroll_position};
use crate::{
    describe::Level,
    options::value_name,
    time_spans::{TimeReference, TypedTime},
    top::{
        dialog::{Dialog, Help, Menu, Page, ProcessScreen, Setup},
        feed::{self, Feed},
        history::DEPTH_MS,
        inspect,
        keys::Action,
        layout::{ScreenSplit, View, step_in_cycle},
        model::Origin,
        panel::{Prompt, PromptPurpose},
        processes::{Column, Filter, ProcessKey, Subject},
        settings::RANGES_S,
    },
};

pub(super) const SELECT_FIRST: &str = "select a process first, with the arrow keys or the mouse";
const SKIP_MS: i64 = 30_000;
const PAGE_LINES: isize = 10;

impl App {
    pub(in crate::top) fn apply_action(&mut self, action: Action) -> NextStep {
        let state = &mut self.state;
        match action {
            Action::Quit => return NextStep::Quit,
            Action::Suspend => return NextStep::Suspend,
            Action::Redraw => return NextStep::DrawAnew,
            Action::Help => self.dialog = Some(Dialog::Help(Help::default())),
            // On the screen of a node, this key first undoes restrictions of the view. If there is
            // nothing left to undo, it closes the screen, and the fleet screen is shown again.
            Action::Back => {
                if !self.go_back() && self.model.origin == Origin::Node {
                    return NextStep::Quit;
                }
            }
            Action::Move(by) => self.move_selection(by),
            Action::PageUp => self.move_selection(-PAGE_LINES),
            Action::PageDown => self.move_selection(PAGE_LINES),
            Action::First => self.move_selection(isize::MIN + 1),
            Action::Last => self.move_selection(isize::MAX),
            Action::NextGpu | Action::PreviousGpu => {
                let gpus: Vec<u32> = self.model.gpus().iter().map(|gpu| gpu.index).collect();
                state.select_adjacent_gpu(&gpus, action == Action::NextGpu);
                if let Some(place) = state
                    .gpu
                    .and_then(|gpu| gpus.iter().position(|known| *known == gpu))
                {
                    state.gpu_scroll = place.saturating_sub(3);
                }
            }
            Action::NextView | Action::PreviousView => {
                let forward = action == Action::NextView;
                self.show_view(step_in_cycle(
                    View::value_variants(),
                    self.state.view,
                    forward,
                ));
            }
            Action::View(place) => self.show_view(View::value_variants()[place]),
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
            Action::LongerRange => self.extend_chart_range(),
            Action::ShorterRange => state.range = state.range.saturating_sub(1),
            Action::NextSort => self.select_next_sort_column(),
            Action::ChooseSort => self.dialog = Some(Dialog::Menu(Menu::new_sort_menu(state))),
            Action::ChooseUser => {
                self.dialog = Some(Dialog::Menu(Menu::new_user_menu(&self.model, state)));
            }
            Action::Reverse => state.processes.descending = !state.processes.descending,
            Action::Tree => state.processes.tree = !state.processes.tree,
            Action::Filter => {
                self.prompt = Some(Prompt::new(
                    PromptPurpose::Filter,
                    &state.processes.filter.text,
                ));
            }
            Action::Search => self.prompt = Some(Prompt::new(PromptPurpose::Search, "")),
            Action::FindNext | Action::FindPrevious => {
                if self.state.processes.search.is_empty() {
                    self.state
                        .show_notice(Level::Warn, "no search text: press / to search");
                } else if !self.select_next_match(action == Action::FindNext, false) {
                    self.state.show_notice(Level::Warn, "no match was found");
                }
            }
            Action::Details | Action::Environment => {
                self.open_process_screen(action == Action::Environment);
            }
            Action::Signal(kill) => self.open_signal_dialog(kill),
            Action::Faster | Action::Slower => self.change_interval(action == Action::Faster),
            Action::Theme => {
                let next = state.theme_name.next(state.background);
                state.set_theme(next);
                state.show_notice(
                    Level::Note,
                    format!("theme: {}; press W to save it", value_name(&next)),
                );
            }
            Action::Save => self.save_settings(),
            Action::TagOrPause => match self.selected_process() {
                Some((key, _)) => {
                    self.state.processes.toggle_tag(key);
                    self.move_selection(1);
                }
                None => return self.apply_action(Action::Pause),
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
            | Action::Goto => self.control_replay(action),
        }
        NextStep::Draw
    }

    fn extend_chart_range(&mut self) {
        let next = (self.state.range + 1).min(RANGES_S.len() - 1);
        if RANGES_S[next] * 1000 > DEPTH_MS
            && !matches!(self.model.origin, Origin::Server | Origin::Node)
        {
            return self.state.show_notice(
                Level::Note,
                "charts of more than an hour need a server: start `gpumon serve`",
            );
        }
        self.state.range = next;
    }

    pub(super) fn show_view(&mut self, view: View) {
        self.state.view = view;
        self.state.view_scroll = 0;
    }

    /// Undoes the last restriction of the view, such as a filter. Returns `false` if there was
    /// nothing to undo.
    fn go_back(&mut self) -> bool {
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

    /// Moves the selection. If no list is shown, scrolls the view.
    pub(super) fn move_selection(&mut self, by: isize) {
        if self.state.room == ScreenSplit::View {
            self.state.view_scroll = move_scroll_position(self.state.view_scroll, by);
            return;
        }
        let rows = self.state.processes.list_rows(&self.model, self.state.gpu);
        self.state.processes.move_selection(&rows, by);
    }

    fn select_next_sort_column(&mut self) {
        let columns = &self.state.processes.columns;
        let at = columns
            .iter()
            .position(|column| *column == self.state.processes.sort)
            .unwrap_or(0);
        let next = columns[(at + 1) % columns.len()];
        self.sort_by(next);
    }

    /// Sorts by a column in its default direction. If the list is already sorted by the column,
    /// reverses the direction.
    pub(super) fn sort_by(&mut self, column: Column) {
        let list = &mut self.state.processes;
        list.descending = if list.sort == column {
            !list.descending
        } else {
            column.is_descending_by_default()
        };
        list.sort = column;
    }

    fn change_interval(&mut self, faster: bool) {
        if self.model.origin == Origin::Recording {
            return self.state.show_notice(
                Level::Warn,
                "the interval of a replay cannot be changed: press > or < to change the speed",
            );
        }
        self.state.select_adjacent_interval(faster);
        let ms = self.state.interval_ms;
        self.feed
            .set_interval(std::time::Duration::from_millis(ms.into()));
        self.state
            .show_notice(Level::Note, format!("a sample every {ms} ms"));
    }

    fn save_settings(&mut self) {
        let settings = self.state.to_settings(&self.settings);
        let Some(file) = &self.file else {
            return self.state.show_notice(
                Level::Act,
                "settings cannot be saved: set HOME, or choose a file with --config",
            );
        };
        match settings.write(file) {
            Ok(()) => self
                .state
                .show_notice(Level::Note, format!("saved in {}", file.display())),
            Err(error) => {
                let cure = "use another file with --config";
                self.state.show_notice(
                    Level::Act,
                    format!("settings not saved in {}: {error}; {cure}", file.display()),
                );
            }
        }
    }

    /// Pauses or resumes the screen. While the screen is paused, updates go to a hidden model, so
    /// that the history has no gap after resuming.
    fn pause_or_resume(&mut self) {
        if let Some(live) = self.behind.take() {
            self.model = live;
            self.state.processes.drop_old_tags(&self.model);
        } else {
            self.behind = Some(self.model.clone());
            self.model.paused = true;
        }
    }

    fn control_replay(&mut self, action: Action) {
        let Feed::Recording(player) = &mut self.feed else {
            return self.state.show_notice(
                Level::Warn,
                "this key works only in a replay; start one with `gpumon replay FILE`",
            );
        };
        let updates = match action {
            Action::Goto => {
                self.prompt = Some(Prompt::new(PromptPurpose::Goto, ""));
                return;
            }
            Action::SpeedUp | Action::SlowDown => {
                player.change_speed(action == Action::SpeedUp);
                return;
            }
            Action::StepForward | Action::StepBack => player.step(action == Action::StepForward),
            Action::SkipForward => player.seek_by(SKIP_MS),
            Action::SkipBack => player.seek_by(-SKIP_MS),
            _ => player.toggle_pause(),
        };
        let updates = feed::convert_records(updates);
        self.apply_replay_updates(updates);
    }

    /// Jumps to a time in the recording. A time of day means its first occurrence in the recording.
    pub(super) fn jump_to_time(&mut self, text: &str) {
        let Ok(moment) = text.parse::<TypedTime>() else {
            return self.state.show_notice(
                Level::Warn,
                format!("'{text}' is not a time: give HH:MM or HH:MM:SS"),
            );
        };
        let Feed::Recording(player) = &mut self.feed else {
            return;
        };
        let (_, first, last) = player.current_first_and_last_ms();
        let at_ms = moment.resolve(&TimeReference::from_recording((first, last)));
        match at_ms
            .ok()
            .filter(|at_ms| *at_ms <= last.saturating_add(1000))
        {
            Some(at_ms) => {
                let updates = feed::convert_records(player.seek_to_time(at_ms));
                self.apply_replay_updates(updates);
            }
            None => self
                .state
                .show_notice(Level::Warn, format!("{text} is not in this recording")),
        }
    }

    pub(super) fn selected_process(&self) -> Option<(ProcessKey, &Process)> {
        let selected = self.state.processes.selected?;
        let rows = self.state.processes.list_rows(&self.model, self.state.gpu);
        rows.into_iter().find_map(|row| match row.subject {
            Subject::Process(process) if row.key() == Some(selected) => Some((selected, process)),
            _ => None,
        })
    }

    /// Opens the screen of the selected process.
    pub(super) fn open_process_screen(&mut self, at_environment: bool) {
        let Some((key, process)) = self.selected_process() else {
            return self.state.show_notice(Level::Warn, SELECT_FIRST);
        };
        let mut screen = ProcessScreen::new(key, process.clone(), at_environment);
        screen.update(&self.model);
        if let Some(why) = self.explain_inaccessible_processes() {
            screen.found = Some(Err(why.to_owned()));
        } else {
            screen.is_asked = true;
            inspect::request_attributes(
                key.pid,
                key.started_ms,
                self.explain_missing_process(key),
                self.inputs.clone(),
            );
        }
        self.dialog = Some(Dialog::Process(Box::new(screen)));
    }

    /// Reads the attributes of the open process from `/proc` again. This is done with every sample,
    /// unless the previous request is still pending.
    pub(super) fn refresh_process_attributes(&mut self) {
        let is_own = self.model.origin == Origin::Driver;
        let inputs = self.inputs.clone();
        if let Some(screen) = self.process_screen()
            && matches!(screen.found, Some(Ok(_)))
            && !screen.is_asked
        {
            screen.is_asked = true;
            let ProcessKey {
                pid, started_ms, ..
            } = screen.key;
            inspect::request_attributes(
                pid,
                started_ms,
                describe_missing_process(is_own, started_ms),
                inputs,
            );
        }
    }

    /// Returns the open screen of a process, even if a confirmation dialog covers it.
    pub(super) fn process_screen(&mut self) -> Option<&mut ProcessScreen> {
        match self.covered.as_mut().or(self.dialog.as_mut()) {
            Some(Dialog::Process(screen)) => Some(screen),
            _ => None,
        }
    }

    pub(super) fn explain_missing_process(&self, key: ProcessKey) -> &'static str {
        describe_missing_process(self.model.origin == Origin::Driver, key.started_ms)
    }

    /// Returns the reason why processes on this screen can be neither inspected nor signaled, or
    /// `None` if they can.
    pub(super) fn explain_inaccessible_processes(&self) -> Option<&'static str> {
        match () {
            () if self.model.origin == Origin::Node => {
                Some("this process runs on another machine: run `gpumon top` there")
            }
            () if self.model.is_recorded() => {
                Some("this is a recording: its processes cannot be inspected or signaled")
            }
            () if self.model.is_simulated() => Some("this process is simulated"),
            () => None,
        }
    }
}

/// Describes why a process is missing from `/proc`. A process that this program found earlier has
/// ended. Any other process may belong to another PID namespace, because the driver and servers
/// list the processes of all namespaces.
fn describe_missing_process(was_found_here: bool, started_ms: Option<u64>) -> &'static str {
    match (was_found_here, started_ms) {
        (true, Some(_)) => "has ended",
        (false, Some(_)) => "has ended, or runs in another PID namespace (a container or the host)",
        (_, None) => "runs in another PID namespace (a container or the host), or has ended",
    }
}
