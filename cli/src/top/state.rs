//! The user's current choices in the live screen.

use std::time::{Duration, Instant};

use super::{
    layout::{ScreenSplit, View},
    processes::ProcessView,
    settings::{RANGES_S, Settings},
    text::make_printable,
    theme::{Background, Theme, ThemeName},
};
use crate::{
    describe::{Level, Thresholds},
    gpu_lines::CellWidths,
    terminal::screen::Glyphs,
};

const NOTICE_DURATION: Duration = Duration::from_secs(6);

/// The sampling intervals, in milliseconds, between which keys switch.
const INTERVALS_MS: [u32; 8] = [100, 250, 500, 1000, 2000, 5000, 10_000, 60_000];

pub(super) struct State {
    pub(super) theme_name: ThemeName,
    pub(super) theme: Theme,
    pub(super) background: Background,
    /// Whether the theme without colors is used because of `NO_COLOR`, regardless of the settings.
    is_theme_forced: bool,
    pub(super) glyphs: Glyphs,
    /// The characters chosen by the user, or `None` to choose by the terminal's capabilities.
    pub(super) chosen_glyphs: Option<Glyphs>,
    pub(super) view: View,
    pub(super) room: ScreenSplit,
    /// The selected GPU, or `None` for all GPUs.
    pub(super) gpu: Option<u32>,
    /// The charted metrics, as positions in `METRICS`.
    pub(super) metrics: Vec<usize>,
    /// The metric that is charted for all GPUs, as a position in the field `metrics` of this
    /// struct.
    pub(super) metric: usize,
    /// The time range of charts, as a position in `RANGES_S`.
    pub(super) range: usize,
    pub(super) interval_ms: u32,
    pub(super) processes: ProcessView,
    /// The index of the first visible line in the list of GPUs.
    pub(super) gpu_scroll: usize,
    /// The maximum widths of the cells in the GPUs' lines so far.
    pub(super) gpu_widths: CellWidths,
    /// Whether a GPU has shown what limits it. The lines for the limits then stay, so that nothing
    /// moves.
    pub(super) has_limits: bool,
    pub(super) view_scroll: usize,
    pub(super) thresholds: Thresholds,
    pub(super) notice: Option<Notice>,
}

/// A message that is shown temporarily.
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) level: Level,
    until: Instant,
}

impl State {
    pub(super) fn new(settings: &Settings, theme: ThemeName, glyphs: Glyphs) -> Self {
        Self {
            theme_name: theme,
            theme: Theme::new(theme),
            background: Background::default(),
            is_theme_forced: theme != settings.theme,
            glyphs,
            chosen_glyphs: settings.glyphs,
            view: settings.view,
            room: ScreenSplit::default(),
            gpu: None,
            metrics: settings.metrics.clone(),
            metric: 0,
            range: RANGES_S
                .iter()
                .position(|range| *range == settings.range_s)
                .unwrap_or_default(),
            interval_ms: settings.interval_ms,
            processes: ProcessView {
                sort: settings.sort,
                descending: settings.descending,
                tree: settings.tree,
                columns: settings.columns.clone(),
                ..ProcessView::default()
            },
            gpu_scroll: 0,
            gpu_widths: CellWidths::default(),
            has_limits: false,
            view_scroll: 0,
            thresholds: settings.thresholds,
            notice: None,
        }
    }

    /// Returns the current choices as settings to save. Settings that the screen cannot change keep
    /// the values in `read`.
    pub(super) fn to_settings(&self, read: &Settings) -> Settings {
        Settings {
            theme: if self.is_theme_forced {
                read.theme
            } else {
                self.theme_name
            },
            interval_ms: self.interval_ms,
            view: self.view,
            sort: self.processes.sort,
            descending: self.processes.descending,
            tree: self.processes.tree,
            columns: self.processes.columns.clone(),
            metrics: self.metrics.clone(),
            range_s: RANGES_S[self.range],
            glyphs: self.chosen_glyphs,
            thresholds: self.thresholds,
            ..read.clone()
        }
    }

    pub(super) fn chart_span_ms(&self) -> u64 {
        RANGES_S[self.range] * 1000
    }

    pub(super) fn shown_metric(&self) -> usize {
        self.metrics
            .get(self.metric)
            .or(self.metrics.first())
            .copied()
            .unwrap_or(0)
    }

    /// Selects the next or previous GPU. After the last GPU and before the first GPU, all GPUs are
    /// selected.
    pub(super) fn select_adjacent_gpu(&mut self, gpus: &[u32], forward: bool) {
        let now = self
            .gpu
            .and_then(|gpu| gpus.iter().position(|known| *known == gpu));
        self.gpu = match (now, forward) {
            (None, true) => gpus.first().copied(),
            (None, false) => gpus.last().copied(),
            (Some(now), true) => gpus.get(now + 1).copied(),
            (Some(now), false) => now.checked_sub(1).map(|before| gpus[before]),
        };
        self.view_scroll = 0;
    }

    pub(super) fn set_theme(&mut self, theme: ThemeName) {
        self.theme_name = theme;
        self.theme = Theme::new(theme.resolve(self.background));
        self.is_theme_forced = false;
    }

    /// Sets the terminal's background, which determines the theme if the theme is `auto`.
    pub(super) fn set_background(&mut self, background: Background) {
        self.background = background;
        self.theme = Theme::new(self.theme_name.resolve(background));
    }

    pub(super) fn set_glyphs(&mut self, glyphs: Option<Glyphs>) {
        self.chosen_glyphs = glyphs;
        self.glyphs = glyphs.unwrap_or_else(Glyphs::from_terminal);
    }

    pub(super) fn select_adjacent_interval(&mut self, faster: bool) {
        let mut intervals = INTERVALS_MS.into_iter();
        let now = self.interval_ms;
        let next = if faster {
            intervals.rfind(|ms| *ms < now)
        } else {
            intervals.find(|ms| *ms > now)
        };
        self.interval_ms = next.unwrap_or(now);
    }

    pub(super) fn show_notice(&mut self, level: Level, text: impl Into<String>) {
        // The message may contain paths, names or errors, in which control characters are possible.
        self.notice = Some(Notice {
            text: make_printable(&text.into()),
            level,
            until: Instant::now() + NOTICE_DURATION,
        });
    }

    /// Removes the notice if it has expired. Returns `true` if it was removed.
    pub(super) fn remove_expired_notice(&mut self, now: Instant) -> bool {
        let is_over = self
            .notice
            .as_ref()
            .is_some_and(|notice| notice.until <= now);
        if is_over {
            self.notice = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_state() -> State {
        State::new(&Settings::default(), ThemeName::Dark, Glyphs::Braille)
    }

    #[test]
    fn gpu_keys_cycle_through_all_gpus() {
        let mut state = make_state();
        let mut seen = Vec::new();
        for forward in [true, true, true, true, false, false] {
            state.select_adjacent_gpu(&[0, 1, 5], forward);
            seen.push(state.gpu);
        }
        assert_eq!(seen, [Some(0), Some(1), Some(5), None, Some(5), Some(1)]);
    }

    #[test]
    fn intervals_stay_within_limits() {
        let mut state = make_state();
        state.interval_ms = 300;
        state.select_adjacent_interval(true);
        assert_eq!(state.interval_ms, 250);
        for _ in 0..20 {
            state.select_adjacent_interval(true);
        }
        assert_eq!(state.interval_ms, 100);
        for _ in 0..20 {
            state.select_adjacent_interval(false);
        }
        assert_eq!(state.interval_ms, 60_000);
    }

    #[test]
    fn saved_settings_contain_current_choices() {
        let mut state = make_state();
        state.processes.tree = true;
        state.set_glyphs(Some(Glyphs::Ascii));
        state.thresholds.power = [1, 2];
        state.set_theme(ThemeName::Light);
        let read = Settings {
            mouse: false,
            ..Settings::default()
        };
        let saved = state.to_settings(&read);
        let glyphs = Some(Glyphs::Ascii);
        let thresholds = Thresholds {
            power: [1, 2],
            ..Thresholds::default()
        };
        let theme = ThemeName::Light;
        let expected = Settings {
            tree: true,
            theme,
            mouse: false,
            glyphs,
            thresholds,
            ..Settings::default()
        };
        assert_eq!(saved, expected);
    }

    #[test]
    fn automatic_theme_follows_background_and_stays_automatic() {
        let read = Settings::default();
        let mut state = State::new(&read, read.theme, Glyphs::Braille);
        let memory = |theme| Theme::new(theme).memory;
        assert_eq!(state.theme.memory, memory(ThemeName::Dark));
        state.set_background(Background::Light);
        assert_eq!(state.theme.memory, memory(ThemeName::Light));
        assert_eq!(state.to_settings(&read), read);
        state.set_theme(ThemeName::ColorBlind);
        state.set_background(Background::Dark);
        assert_eq!(state.theme.memory, memory(ThemeName::ColorBlind));
    }

    #[test]
    fn theme_forced_by_no_color_is_not_saved() {
        let read = Settings::default();
        let mut state = State::new(&read, ThemeName::Monochrome, Glyphs::Braille);
        assert_eq!(state.to_settings(&read).theme, ThemeName::Auto);
        state.set_theme(ThemeName::Monochrome);
        assert_eq!(state.to_settings(&read).theme, ThemeName::Monochrome);
    }

    #[test]
    fn notice_has_no_control_characters() {
        let mut state = make_state();
        state.show_notice(Level::Note, "a\u{1b}]0;b\u{7}c\u{202e}d");
        assert_eq!(state.notice.unwrap().text, "a ]0;b c?d");
    }
}
