//! Which readings are charted.

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent},
    layout::Rect,
};

use super::{Answer, Line, Scroll, draw_box};
use crate::top::{
    metrics::{Drawn, METRICS},
    painter::Painter,
    state::State,
};

/// The list of readings, one of which is pointed at.
#[derive(Default)]
pub(in crate::top) struct Choice {
    at: usize,
    scroll: Scroll,
}

impl Choice {
    pub(super) fn key(&mut self, key: KeyEvent, state: &mut State) -> Answer {
        match key.code {
            KeyCode::Down => self.step(1),
            KeyCode::Up => self.step(-1),
            KeyCode::Char(' ' | 'x') => self.toggle(state),
            KeyCode::Enter | KeyCode::Char('c') => return Answer::Leave,
            _ => {}
        }
        Answer::Stay
    }

    pub(super) fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(METRICS.len() - 1);
    }

    /// Points at a line, and switches it.
    pub(in crate::top) fn click(&mut self, line: usize, state: &mut State) {
        if line < METRICS.len() {
            self.at = line;
            self.toggle(state);
        }
    }

    /// One that is charted no longer is, unless it is the last; one that was not comes last.
    fn toggle(&self, state: &mut State) {
        match state.metrics.iter().position(|metric| *metric == self.at) {
            Some(_) if state.metrics.len() == 1 => {}
            Some(place) => {
                state.metrics.remove(place);
                state.metric = state.metric.min(state.metrics.len() - 1);
            }
            None => state.metrics.push(self.at),
        }
    }

    pub(super) fn draw(&mut self, painter: &mut Painter<'_>, screen: Rect, state: &State) {
        let lines: Vec<Line> = METRICS
            .iter()
            .enumerate()
            .map(|(place, metric)| {
                let mark = if state.metrics.contains(&place) { "[x] " } else { "[ ] " };
                let style =
                    if place == self.at { painter.theme.selected } else { painter.theme.of(metric.unit.meaning()) };
                vec![(mark.to_owned(), painter.theme.plain), (metric.label.to_owned(), style)]
            })
            .chain([Line::new(), vec![("space switches, enter leaves".to_owned(), painter.theme.dim)]])
            .collect();
        self.scroll.keep_in_sight(self.at, screen);
        draw_box(painter, screen, "Readings in charts", 32, &lines, &mut self.scroll);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        glyphs::Glyphs,
        metrics::{default_metrics, position},
        settings::Settings,
        theme::ThemeName,
    };

    #[test]
    fn readings_are_switched_and_the_last_stays() {
        let mut state = State::new(&Settings::default(), ThemeName::Dark, Glyphs::Braille);
        let mut choice = Choice::default();
        let tensor = position("tensor").unwrap();
        for line in [tensor].into_iter().chain(default_metrics()).chain([tensor]) {
            choice.click(line, &mut state);
        }
        assert_eq!(state.metrics, [tensor], "the last cannot be switched off");
        choice.click(usize::MAX, &mut state);
        assert_eq!(state.metrics, [tensor]);
    }
}
