//! Progress on standard error. A terminal shows the goal and below it a status line that is updated
//! in place. Other outputs get a line with both from time to time.

use std::time::{Duration, Instant};

use gpumon_probe::units::short_duration;
use unicode_width::UnicodeWidthStr;

use super::condition::Verdict;
use crate::{exit::say, terminal::status_line::StatusLine};

/// The interval between lines if they cannot be replaced.
const LINE_INTERVAL: Duration = Duration::from_mins(10);

/// The reporter of progress, with its output and the time of the last line.
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

/// The state of one candidate, and its distance from the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
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

    /// Reports the goal and the state of each candidate.
    pub(super) fn waiting(&mut self, goal: &str, parts: &[Part]) {
        match self.output {
            Output::None => {}
            Output::Lines if self.last.is_some_and(|last| last.elapsed() < LINE_INTERVAL) => {}
            Output::Lines => {
                self.last = Some(Instant::now());
                say(&format!("waiting for {goal}: {}", Part::all(parts)));
            }
            Output::Terminal => {
                if self.last.replace(Instant::now()).is_none() {
                    say(&format!("waiting for {goal}"));
                }
                let head = format!("{:>7}  ", short_duration(self.begun.elapsed()));
                self.shown.show(&fit(&head, parts, StatusLine::columns()));
            }
        }
    }

    /// Reports the devices found, in place of the status line.
    pub(super) fn found(&mut self, names: &[String]) {
        self.clear();
        if self.output != Output::None {
            say(&format!(
                "took {} after {}",
                names.join(", "),
                short_duration(self.begun.elapsed())
            ));
        }
    }

    pub(super) fn clear(&mut self) {
        self.shown.clear();
    }
}

impl Part {
    pub(super) fn of(name: &str, verdict: &Verdict) -> Self {
        let text = match verdict {
            Verdict::Met => format!("{name} ready"),
            Verdict::NotYet(how) | Verdict::Out(how) => format!("{name} {how}"),
            Verdict::Never(why) => format!("{name} never, {why}"),
        };
        Self {
            text,
            distance: verdict.distance(),
        }
    }

    pub(super) fn alone(why: String) -> Self {
        Self {
            text: why,
            distance: 0,
        }
    }

    /// Joins all candidates, in the driver's order.
    pub(super) fn all(parts: &[Self]) -> String {
        parts
            .iter()
            .map(|part| part.text.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Joins all candidates in order. If they do not fit, the nearest ones come first, followed by the
/// number of the others.
fn fit(head: &str, parts: &[Part], width: usize) -> String {
    let all = format!("{head}{}", Part::all(parts));
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
    // Cutting a wide character in half would make the line too wide, but none of these texts
    // contains one.
    format!("{head}{nearest}").chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_grows_beyond_its_terminal_and_keeps_the_nearest() {
        let parts = [
            Part::of(
                "GPU 0",
                &Verdict::NotYet("1.0 GiB free + 90 % busy".to_owned()),
            ),
            Part::of("GPU 1", &Verdict::Out("taken".to_owned())),
            Part::of("GPU 2", &Verdict::NotYet("idle 3s".to_owned())),
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
            assert_eq!(fit(" 1s  ", &parts, width), line);
        }
    }
}
