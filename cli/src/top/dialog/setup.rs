//! The setup dialog, in which the user changes settings while seeing their effect.

use std::slice;

use clap::ValueEnum as _;
use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{KeyEffect, List, StyledLine, draw_box};
use crate::{
    describe::Thresholds,
    options::value_name,
    terminal::screen::Glyphs,
    top::{
        keys::Action,
        layout::step_in_cycle,
        metrics::{list_metrics, metric_label},
        painter::{Hit, Painter},
        processes::Column,
        state::State,
        text::{align_left, format_chart_range},
        theme::ThemeName,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::top) enum Page {
    Columns,
    Charts,
    Display,
    Thresholds,
}

impl Page {
    const ALL: [Self; 4] = [Self::Columns, Self::Charts, Self::Display, Self::Thresholds];

    fn title(self) -> &'static str {
        match self {
            Self::Columns => " Columns ",
            Self::Charts => " Charts ",
            Self::Display => " Display ",
            Self::Thresholds => " Thresholds ",
        }
    }
}

/// One line on a page of the dialog.
#[derive(Debug, Clone, Copy)]
enum Item {
    Column(Column),
    /// A metric, given by its index in `METRICS`.
    Metric(usize),
    Theme,
    Interval,
    Range,
    Glyphs,
    /// A threshold of the reading with this index in `READINGS`. If the flag is `true`, it is the
    /// threshold for heavy load; otherwise, it is the threshold for moderate load.
    Threshold(usize, bool),
}

type ThresholdAccess = fn(&mut Thresholds) -> &mut [u32; 2];

const READINGS: [(&str, ThresholdAccess); 4] = [
    ("GPU utilization", |all| &mut all.utilization),
    ("memory", |all| &mut all.memory),
    ("temperature", |all| &mut all.temperature),
    ("power", |all| &mut all.power),
];

/// The step by which a threshold changes.
const THRESHOLD_STEP: u32 = 5;

pub(in crate::top) struct Setup {
    page: Page,
    /// All columns in display order. When the dialog opens, the chosen columns come first.
    columns: Vec<Column>,
    metrics: Vec<usize>,
    list: List,
}

impl Setup {
    pub(in crate::top) fn new(page: Page, state: &State) -> Self {
        let all = Column::value_variants().iter().copied();
        let columns = list_chosen_first(&state.processes.columns, all);
        let metrics = list_chosen_first(&state.metrics, list_metrics());
        Self {
            page,
            columns,
            metrics,
            list: List::default(),
        }
    }

    pub(in crate::top) fn show_page(&mut self, page: Page) {
        (self.page, self.list) = (page, List::default());
    }

    fn items(&self) -> Vec<Item> {
        match self.page {
            Page::Columns => self.columns.iter().copied().map(Item::Column).collect(),
            Page::Charts => [Item::Range, Item::Glyphs]
                .into_iter()
                .chain(self.metrics.iter().copied().map(Item::Metric))
                .collect(),
            Page::Display => vec![Item::Theme, Item::Interval],
            Page::Thresholds => (0..READINGS.len())
                .flat_map(|reading| [false, true].map(|heavy| Item::Threshold(reading, heavy)))
                .collect(),
        }
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent, state: &mut State) -> KeyEffect {
        match key.code {
            _ if self.list.handle_key(key, self.items().len()) => {}
            KeyCode::Tab => self.show_page(step_in_cycle(&Page::ALL, self.page, true)),
            KeyCode::BackTab => self.show_page(step_in_cycle(&Page::ALL, self.page, false)),
            KeyCode::Right | KeyCode::Char(' ' | '+') | KeyCode::Enter => {
                return self.change_selected_item(true, state);
            }
            KeyCode::Left | KeyCode::Char('-') => return self.change_selected_item(false, state),
            KeyCode::Char('[') | KeyCode::F(7) => self.move_item(-1, state),
            KeyCode::Char(']') | KeyCode::F(8) => self.move_item(1, state),
            KeyCode::Char('W') => return KeyEffect::Act(Action::Save),
            KeyCode::F(2 | 10) | KeyCode::Char('S') => return KeyEffect::Leave,
            _ => {}
        }
        KeyEffect::Stay
    }

    pub(super) fn move_selection(&mut self, by: isize) {
        self.list.move_selection(by, self.items().len());
    }

    /// Selects the clicked line and changes its value.
    pub(in crate::top) fn handle_click(&mut self, line: usize, state: &mut State) -> KeyEffect {
        self.list.at = line.min(self.items().len() - 1);
        self.change_selected_item(true, state)
    }

    fn change_selected_item(&mut self, forward: bool, state: &mut State) -> KeyEffect {
        let next =
            |action: Action, other: Action| KeyEffect::Act(if forward { action } else { other });
        match self.items()[self.list.at] {
            Item::Column(column) => {
                toggle_item(&self.columns, &mut state.processes.columns, column);
            }
            Item::Metric(metric) => {
                toggle_item(&self.metrics, &mut state.metrics, metric);
                state.metric = state.metric.min(state.metrics.len() - 1);
            }
            Item::Theme => {
                let all = ThemeName::value_variants();
                state.set_theme(step_in_cycle(all, state.theme_name, forward));
            }
            Item::Interval => return next(Action::Slower, Action::Faster),
            Item::Range => return next(Action::LongerRange, Action::ShorterRange),
            Item::Glyphs => {
                let [braille, blocks, ascii] = Glyphs::ALL.map(Some);
                state.set_glyphs(step_in_cycle(
                    &[None, braille, blocks, ascii],
                    state.chosen_glyphs,
                    forward,
                ));
            }
            Item::Threshold(reading, heavy) => {
                let [moderate, high] = READINGS[reading].1(&mut state.thresholds);
                let (value, least, most) = if heavy {
                    (high, *moderate + 1, 100)
                } else {
                    (moderate, 1, *high - 1)
                };
                // Steps lead to multiples of 5. The result is limited to the allowed range, which
                // may start at 1.
                let stepped = if forward {
                    (*value / THRESHOLD_STEP + 1) * THRESHOLD_STEP
                } else {
                    (value.saturating_sub(1) / THRESHOLD_STEP) * THRESHOLD_STEP
                };
                *value = stepped.clamp(least, most);
            }
        }
        KeyEffect::Stay
    }

    /// Moves a column or metric up or down in its list.
    fn move_item(&mut self, by: isize, state: &mut State) {
        let first = if self.page == Page::Charts { 2 } else { 0 };
        let moved = match self.page {
            Page::Columns => swap_with_neighbor(
                &mut self.columns,
                &mut state.processes.columns,
                self.list.at,
                by,
            ),
            Page::Charts if self.list.at >= first => swap_with_neighbor(
                &mut self.metrics,
                &mut state.metrics,
                self.list.at - first,
                by,
            ),
            _ => false,
        };
        if moved {
            self.move_selection(by);
        }
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect, state: &State) {
        const COLUMNS: u16 = 56;
        let theme = painter.theme;
        let line = |(place, item): (usize, Item)| -> StyledLine {
            let text = align_left(&format_item(item, state), usize::from(COLUMNS));
            vec![(
                text,
                if place == self.list.at {
                    theme.selected
                } else {
                    theme.plain
                },
            )]
        };
        let lines: Vec<StyledLine> = self.items().into_iter().enumerate().map(line).collect();
        // A click outside the box closes the dialog, even on another clickable area.
        painter.add_clickable_area(screen, Hit::Dialog(usize::MAX));
        // The box does not cover what the page's settings change: for columns, the list of
        // processes below the box; otherwise, the GPUs and charts above it. The bottom line also
        // stays visible, because it shows the result of saving.
        let height = (screen.height * 3 / 5).min(lines.len() as u16 + 2);
        let y = if self.page == Page::Columns {
            1
        } else {
            screen.height.saturating_sub(height + 1)
        };
        let within = Rect {
            y: screen.y + y,
            height,
            ..screen
        };
        self.list.scroll_into_view(within);
        let area = draw_box(
            painter,
            within,
            "Setup",
            COLUMNS,
            &lines,
            &mut self.list.scroll,
        );
        let mut x = area.x + 10;
        for page in Page::ALL {
            let style = if page == self.page {
                theme.selected
            } else {
                theme.dim
            };
            let taken = painter.draw_text(
                x,
                area.y,
                area.right().saturating_sub(x + 1),
                page.title(),
                style,
            );
            painter.add_clickable_area(
                Rect {
                    x,
                    width: taken,
                    height: 1,
                    ..area
                },
                Hit::Page(page),
            );
            x += taken + 1;
        }
        let keys = if matches!(self.page, Page::Columns | Page::Charts) {
            " ← → set  [ ] move  tab page  W save  esc close "
        } else {
            " ← → set  tab page  W save  esc close "
        };
        painter.draw_text(
            area.x + 2,
            area.bottom().saturating_sub(1),
            area.width.saturating_sub(12),
            keys,
            theme.dim,
        );
    }
}

fn format_item(item: Item, state: &State) -> String {
    let check =
        |is_chosen: bool, label: &str| format!("[{}] {label}", if is_chosen { 'x' } else { ' ' });
    let value = |label: &str, value: &str| format!("{} ◂ {value} ▸", align_left(label, 32));
    match item {
        Item::Column(column) => check(
            state.processes.columns.contains(&column),
            &value_name(&column),
        ),
        Item::Metric(metric) => check(state.metrics.contains(&metric), metric_label(metric)),
        Item::Theme => value("theme", &value_name(&state.theme_name)),
        Item::Interval => value("refresh interval", &format!("{} ms", state.interval_ms)),
        Item::Range => value("time range", &format_chart_range(state.chart_span_ms())),
        Item::Glyphs => value("glyphs", state.chosen_glyphs.map_or("auto", Glyphs::id)),
        Item::Threshold(reading, heavy) => {
            let level = if heavy { "heavy" } else { "moderate" };
            let (label, of) = READINGS[reading];
            let percent = of(&mut state.thresholds.clone())[usize::from(heavy)];
            value(&format!("{label}: {level} from"), &format!("{percent} %"))
        }
    }
}

fn list_chosen_first<T: Copy + PartialEq>(
    chosen: &[T],
    all: impl IntoIterator<Item = T>,
) -> Vec<T> {
    let others = all.into_iter().filter(|one| !chosen.contains(one));
    chosen.iter().copied().chain(others).collect()
}

/// Adds `one` to the chosen items, or removes it. The chosen items keep the order of all items. The
/// last chosen item cannot be removed.
fn toggle_item<T: Copy + PartialEq>(order: &[T], chosen: &mut Vec<T>, one: T) {
    if chosen.as_slice() != slice::from_ref(&one) {
        let is_chosen = |other: &T| chosen.contains(other) != (*other == one);
        *chosen = order.iter().copied().filter(is_chosen).collect();
    }
}

/// Swaps an item with a neighbor. Returns `false` at the ends of the list.
fn swap_with_neighbor<T: Copy + PartialEq>(
    order: &mut [T],
    chosen: &mut Vec<T>,
    at: usize,
    by: isize,
) -> bool {
    let Some(to) = at.checked_add_signed(by).filter(|to| *to < order.len()) else {
        return false;
    };
    order.swap(at, to);
    *chosen = order
        .iter()
        .copied()
        .filter(|one| chosen.contains(one))
        .collect();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{metrics::find_metric_position, settings::Settings};

    fn make_state() -> State {
        State::new(&Settings::default(), ThemeName::Dark, Glyphs::Braille)
    }

    fn press_keys(setup: &mut Setup, state: &mut State, keys: &[KeyCode]) {
        for key in keys {
            setup.handle_key((*key).into(), state);
        }
    }

    #[test]
    fn last_metric_cannot_be_deselected() {
        let mut state = make_state();
        let mut setup = Setup::new(Page::Charts, &state);
        let tensor = find_metric_position("tensor").unwrap();
        let line = 2 + setup
            .metrics
            .iter()
            .position(|known| *known == tensor)
            .unwrap();
        setup.handle_click(line, &mut state);
        for line in 2..6 {
            setup.handle_click(line, &mut state);
        }
        assert_eq!(state.metrics, [tensor]);
        setup.handle_click(line, &mut state);
        assert_eq!(state.metrics, [tensor], "the last cannot be switched off");
    }

    #[test]
    fn columns_can_be_toggled_and_moved() {
        let mut state = make_state();
        let mut setup = Setup::new(Page::Columns, &state);
        press_keys(
            &mut setup,
            &mut state,
            &[KeyCode::Char(' '), KeyCode::Down, KeyCode::Char(']')],
        );
        assert_eq!(state.processes.columns[..2], [Column::User, Column::Pid]);
        assert!(!state.processes.columns.contains(&Column::Gpu));
        // When the column is chosen again, it returns to its former position.
        press_keys(
            &mut setup,
            &mut state,
            &[KeyCode::PageUp, KeyCode::Char(' ')],
        );
        assert_eq!(
            state.processes.columns[..3],
            [Column::Gpu, Column::User, Column::Pid]
        );
    }

    #[test]
    fn thresholds_stay_ordered_and_within_limits() {
        let mut state = make_state();
        let mut setup = Setup::new(Page::Thresholds, &state);
        press_keys(&mut setup, &mut state, &[KeyCode::Left; 5]);
        assert_eq!(state.thresholds.utilization, [1, 75]);
        press_keys(&mut setup, &mut state, &[KeyCode::Right; 40]);
        assert_eq!(state.thresholds.utilization, [74, 75]);
        press_keys(&mut setup, &mut state, &[KeyCode::Down]);
        press_keys(&mut setup, &mut state, &[KeyCode::Right; 40]);
        assert_eq!(state.thresholds.utilization, [74, 100]);
    }
}
