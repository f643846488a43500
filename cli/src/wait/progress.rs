//! Progress messages on standard error. A terminal shows the goal, followed by a status line that
//! is updated in place. Other outputs get a line with both at long intervals.

use std::time::{Duration, Instant};

use gpumon_probe::units::format_short_duration;
use unicode_width::UnicodeWidthStr;

use super::condition::Verdict;
use crate::{exit::print_message, terminal::status_line::StatusLine};

/// The interval between lines if the output is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_mins(10);

/// Reports the progress of a wait.
#[derive(Debug)]
pub(crate) struct Progress {
    output: Output,
    begun: Instant,
    last: Option<Instant>,
    shown: StatusLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    None,
    Lines,
    Terminal,
}

/// A description of a candidate's state, and the candidate's distance from the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CandidateState {
    text: String,
    distance: usize,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let output = match (quiet, StatusLine::is_possible()) {
            (true, _) => Output::None,
            (false, true) => Output::Terminal,
            (false, false) => Output::Lines,
        };
        Self {
            output,
            begun: Instant::now(),
            last: None,
            shown: StatusLine::default(),
        }
    }

    /// Reports the goal and each candidate's state.
    pub(super) fn report_waiting(&mut self, goal: &str, parts: &[CandidateState]) {
        match self.output {
            Output::None => {}
            Output::Lines if self.last.is_some_and(|last| last.elapsed() < LINE_INTERVAL) => {}
            Output::Lines => {
                self.last = Some(Instant::now());
                print_message(&format!(
                    "waiting for {goal}: {}",
                    CandidateState::join_all(parts)
                ));
            }
            Output::Terminal => {
                if self.last.replace(Instant::now()).is_none() {
                    print_message(&format!("waiting for {goal}"));
                }
                let head = format!("{:>7}  ", format_short_duration(self.begun.elapsed()));
                self.shown
                    .show(&fit_states(&head, parts, StatusLine::columns()));
            }
        }
    }

    /// Reports the devices that were taken, and removes the status line.
    pub(super) fn report_found(&mut self, names: &[String]) {
        self.clear();
        if self.output != Output::None {
            print_message(&format!(
                "took {} after {}",
                names.join(", "),
                format_short_duration(self.begun.elapsed())
            ));
        }
    }

    pub(super) fn clear(&mut self) {
        self.shown.clear();
    }
}

impl CandidateState {
    pub(super) fn from_verdict(name: &str, verdict: &Verdict) -> Self {
        let text = match verdict {
            Verdict::Met => format!("{name} ready"),
            Verdict::NotYet(how) | Verdict::Out(how) => format!("{name} {how}"),
            Verdict::Never(why) => format!("{name} can never be ready: {why}"),
        };
        Self {
            text,
            distance: verdict.distance(),
        }
    }

    pub(super) fn from_reason(why: String) -> Self {
        Self {
            text: why,
            distance: 0,
        }
    }

    /// Joins the descriptions of all candidates in the driver's order.
    pub(super) fn join_all(parts: &[Self]) -> String {
        parts
            .iter()
            .map(|part| part.text.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Joins the descriptions of all candidates in the driver's order. If they do not fit, lists those
/// nearest to the goal, followed by the number of other candidates.
fn fit_states(head: &str, parts: &[CandidateState], width: usize) -> String {
    let all = format!("{head}{}", CandidateState::join_all(parts));
    if all.width() <= width {
        return all;
    }
    let mut nearest: Vec<_> = parts.iter().collect();
    nearest.sort_by_key(|part| part.distance);
    for shown in (1..parts.len()).rev() {
        let texts: Vec<_> = nearest[..shown]
            .iter()
            .map(|part| part.text.as_str())
            .collect();
        let line = format!("{head}{}, +{} more", texts.join(", "), parts.len() - shown);
        if line.width() <= width {
            return line;
        }
    }
    let nearest = nearest.first().map_or("", |part| part.text.as_str());
    // The text is cut by characters. It contains no wide characters, so the line does not become
    // too wide.
    format!("{head}{nearest}").chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_fits_terminal_and_keeps_nearest_candidates() {
        let parts = [
            CandidateState::from_verdict(
                "GPU 0",
                &Verdict::NotYet("1.0 GiB free + 90 % busy".to_owned()),
            ),
            CandidateState::from_verdict("GPU 1", &Verdict::Out("taken".to_owned())),
            CandidateState::from_verdict("GPU 2", &Verdict::NotYet("idle 3s".to_owned())),
        ];
        for (width, line) in [
            (
                80,
                " 1s  GPU 0 1.0 GiB free + 90 % busy, GPU 1 taken, GPU 2 idle 3s",
            ),
            (
                62,
                " 1s  GPU 2 idle 3s, GPU 0 1.0 GiB free + 90 % busy, +1 more",
            ),
            (50, " 1s  GPU 2 idle 3s, +2 more"),
            (20, " 1s  GPU 2 idle 3s"),
            (5, " 1s  "),
            (0, ""),
        ] {
            assert_eq!(fit_states(" 1s  ", &parts, width), line);
        }
    }
}
