//! Checks of gpumon itself: the user's server, settings files, and results of benchmarks.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use gpumon_history::span::Storage;
use gpumon_probe::benchmarks::{self, Benchmarks, FILE, Measurement};
use gpumon_server::frame::{CollectorState, CollectorStatus};
use serde::Deserialize;
use serde_json::Value;

use super::{
    super::bench::{format_dated, format_microseconds},
    finding::Finding,
    gpus::name,
};
use crate::{
    config::{self, Parsed, Unreadable, Wanted},
    driver::Answer,
    local::{self, NoServer, ServerArgs},
    terminal::units::format_count,
};

/// The checked part of `/api/v1/snapshot`. The rest may have the format of another version.
#[derive(Debug, Deserialize)]
struct Snapshot {
    version: String,
    collector: CollectorStatus,
}

/// A server's answer about its state, or the reason why the answer is missing.
pub(super) struct Response {
    pub(super) socket: String,
    pub(super) snapshot: Result<Value, String>,
    /// The server's storage for history; `None` for an older server, which does not report it.
    pub(super) storage: Option<Storage>,
}

/// Requests a snapshot and the state of history from the server.
pub(super) fn ask(server: &ServerArgs) -> Result<Response, NoServer> {
    let connection = server.connect()?;
    let socket = connection.path.display().to_string();
    let snapshot = read(connection.ask("GET", "/api/v1/snapshot"));
    let history = server
        .connect()
        .ok()
        .and_then(|server| read(server.ask("GET", "/api/v1/history?points=1")).ok());
    let storage = history.and_then(|history| Storage::deserialize(&history["storage"]).ok());
    Ok(Response {
        socket,
        snapshot,
        storage,
    })
}

fn read(answer: io::Result<local::Answer>) -> Result<Value, String> {
    match answer {
        Ok(answer) if answer.status == 200 => {
            serde_json::from_str(&answer.body).map_err(|error| unreadable(&error))
        }
        Ok(answer) => Err(format!("it responds with status {}", answer.status)),
        Err(error) => Err(format!("it does not respond: {error}")),
    }
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("its response is not readable: {error}")
}

pub(super) fn check(response: &Result<Response, NoServer>) -> Finding {
    let check = "server";
    let Response {
        socket, snapshot, ..
    } = match response {
        Ok(response) => response,
        Err(none) => {
            return Finding::note(check, format!("none at {}", none.places()))
                .with_cure(NoServer::CURE);
        }
    };
    let snapshot = snapshot.as_ref().map_err(Clone::clone);
    match snapshot
        .and_then(|snapshot| Snapshot::deserialize(snapshot).map_err(|error| unreadable(&error)))
    {
        Ok(Snapshot { version, collector }) => judge_server(socket, &version, &collector),
        Err(error) => Finding::warning(check, error, format!("restart the server at {socket}")),
    }
}

/// Reports where the server stores history, and problems with that.
pub(super) fn check_history(response: &Result<Response, NoServer>) -> Option<Finding> {
    let storage = response.as_ref().ok()?.storage.as_ref()?;
    let check = "history";
    let days = storage.reach_ms / (24 * 3_600_000);
    Some(match &storage.problem {
        // The problem's message already contains advice.
        Some(problem) => Finding::warning(
            check,
            problem,
            "then wait a minute: it is retried automatically",
        ),
        None if storage.on_disk => Finding::ok(check, format!("on disk, for {days} days")),
        None => Finding::note(
            check,
            format!("in memory, for {} hours", storage.reach_ms / 3_600_000),
        )
        .with_cure("to keep it: `gpumon serve --data-dir DIR`"),
    })
}

fn judge_server(at: &str, version: &str, collector: &CollectorStatus) -> Finding {
    let message = collector.message.clone().unwrap_or_default();
    let check = "server";
    match collector.state {
        CollectorState::Running => {
            let through = collector
                .joined
                .as_ref()
                .map(|socket| format!(" through the server at {socket}"));
            Finding::ok(
                check,
                format!("{version} at {at}, reading{}", through.unwrap_or_default()),
            )
        }
        CollectorState::Starting => Finding::note(check, format!("{version} at {at}, starting")),
        CollectorState::Paused => Finding::note(check, format!("{version} at {at}, {message}"))
            .with_cure(if collector.joined.is_some() {
                "`sudo gpumon resume`"
            } else {
                "`gpumon resume`"
            }),
        CollectorState::Restarting => Finding::warning(
            check,
            format!("{version} at {at}: {message}"),
            "it retries automatically; see its log",
        ),
        CollectorState::Unavailable => Finding::warning(
            check,
            format!("{version} at {at} has nothing to read"),
            message,
        ),
    }
}

pub(super) struct Settings {
    files: Vec<(PathBuf, Parsed)>,
    unreadable: Vec<Unreadable>,
}

impl Settings {
    pub(super) fn read(named: Option<&Path>) -> Self {
        let (files, unreadable) = config::read(named);
        Self { files, unreadable }
    }

    /// Returns a finding for each settings file, with the number of its mistakes.
    pub(super) fn check(&self) -> impl Iterator<Item = Finding> {
        let warning = |text| Finding::warning("settings", text, "run `gpumon config check`");
        let unreadable = self
            .unreadable
            .iter()
            .map(move |file| warning(format!("a settings file cannot be read: {file}")));
        let read = self.files.iter().map(move |(path, parsed)| {
            let path = path.display();
            match parsed.mistakes.len() {
                0 => Finding::ok(
                    "settings",
                    format!(
                        "{path} sets {}",
                        format_count(parsed.entries.len() as u64, "key")
                    ),
                ),
                mistakes => warning(format!(
                    "{path} has {}",
                    format_count(mistakes as u64, "mistake")
                )),
            }
        });
        unreadable.chain(read)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().map(|(path, _)| path.clone())
    }

    /// Returns the data directory that the settings files name.
    pub(super) fn data_dir(&self) -> Option<PathBuf> {
        let mut entries = self.files.iter().flat_map(|(_, parsed)| &parsed.entries);
        let named = entries.rfind(|entry| entry.key.full_name() == "serve.data-dir")?;
        Some(named.texts.concat().into())
    }

    /// Returns the settings of all files in TOML, if any file exists. Of free texts, only the key
    /// is shown.
    pub(super) fn effective(&self) -> Option<String> {
        let mut text = String::new();
        for ((_, parsed), number) in self.files.iter().zip(1..) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# file {number}; mistakes that have no effect: {}",
                parsed.mistakes.len()
            );
            for entry in &parsed.entries {
                let is_word = !entry.key.arg.get_possible_values().is_empty();
                let is_shown =
                    is_word || !matches!(entry.key.wanted(), Wanted::Text | Wanted::List);
                let name = entry.key.full_name();
                let _ = if is_shown {
                    writeln!(text, "{name} = {}", entry.key.written(&entry.texts))
                } else {
                    writeln!(text, "# {name} is set")
                };
            }
        }
        (!self.files.is_empty()).then_some(text)
    }
}

const CURE: &str = "check power limit, clocks and cooling, then run `gpumon bench --baseline` \
                    again, or `gpumon bench \
                    --save-baseline` if the change is intended";

pub(super) fn check_benchmarks(answer: &Answer, data_dir: Option<&Path>) -> Vec<Finding> {
    let Some(file) = data_dir.map(|folder| folder.join(FILE)) else {
        return Vec::new();
    };
    match benchmarks::read(&file) {
        Ok(known) => {
            let gpus = answer.inventory.gpus.iter();
            gpus.filter_map(|gpu| Some(of_one(&known, gpu.index, gpu.uuid.as_deref()?)))
                .flatten()
                .collect()
        }
        Err(error) => {
            let text = format!("{} cannot be read: {error}", file.display());
            let cure =
                "move the file away, and store baselines with `gpumon bench --save-baseline`";
            vec![Finding::warning("benchmarks", text, cure)]
        }
    }
}

fn of_one(known: &Benchmarks, index: u32, uuid: &str) -> Vec<Finding> {
    let took = |result: &Measurement| {
        let took = format_dated(result.time.median_us, result.at_ms);
        format!("{} ({}) took {took}", result.workload, result.dtype)
    };
    let slower = known.below_baseline(uuid).map(|below| {
        let (latest, before) = (took(&below.latest), &below.baseline);
        let before = format_dated(before.time.median_us, before.at_ms);
        let ratio = below.ratio;
        format!("below its baseline: {latest}, and {before} at its baseline ({ratio:.2}x)")
    });
    let slowest = known.below_siblings(uuid).map(|below| {
        let (own, theirs) = (
            took(&below.baseline),
            format_microseconds(below.siblings.median_us),
        );
        let others = match below.siblings.count {
            1 => "another".to_owned(),
            count => format!("{count} others"),
        };
        let ratio = below.ratio;
        format!("slower than GPUs of the same model: {own}, and {theirs} on {others} ({ratio:.2}x)")
    });
    let texts = slower.into_iter().chain(slowest);
    texts
        .map(|text| Finding::warning(name(index), text, CURE))
        .collect()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::benchmarks::Interval;

    use super::super::finding::Verdict;

    use super::*;

    #[test]
    fn server_without_gpu_is_warning_unlike_paused_one() {
        let verdict = |state| {
            let message = Some("why".to_owned());
            judge_server(
                "/run/x",
                "1.0",
                &CollectorStatus {
                    state,
                    since_ms: 0,
                    message,
                    resumes_ms: None,
                    joined: None,
                },
            )
            .verdict
        };
        assert_eq!(verdict(CollectorState::Running), Verdict::Ok);
        assert_eq!(verdict(CollectorState::Paused), Verdict::Note);
        assert_eq!(verdict(CollectorState::Unavailable), Verdict::Warning);
    }

    #[test]
    fn place_or_problem_of_history_is_found() {
        let verdict = |on_disk, problem: Option<&str>| {
            let storage = Storage {
                on_disk,
                problem: problem.map(ToOwned::to_owned),
                reach_ms: 6 * 3_600_000,
            };
            let response = Response {
                socket: String::new(),
                snapshot: Ok(Value::Null),
                storage: Some(storage),
            };
            let finding = check_history(&Ok(response)).unwrap();
            (finding.verdict, finding.text)
        };
        assert_eq!(verdict(true, None).0, Verdict::Ok);
        assert_eq!(
            verdict(false, None),
            (Verdict::Note, "in memory, for 6 hours".to_owned())
        );
        assert_eq!(
            verdict(true, Some("the disk is full")),
            (Verdict::Warning, "the disk is full".to_owned())
        );
    }

    #[test]
    fn failed_answer_is_reported_with_reason() {
        let answered = |status, body: &str| {
            read(Ok(local::Answer {
                status,
                body: body.to_owned(),
            }))
        };
        assert_eq!(answered(200, "[1]"), Ok([1].into()));
        assert!(answered(200, "{").unwrap_err().contains("not readable"));
        assert!(answered(403, "{}").unwrap_err().contains("status 403"));
        assert!(
            read(Err(io::ErrorKind::TimedOut.into()))
                .unwrap_err()
                .contains("does not respond")
        );
        let response = Response {
            socket: "/run/x".to_owned(),
            snapshot: Ok([1].into()),
            storage: None,
        };
        assert_eq!(check(&Ok(response)).verdict, Verdict::Warning);
    }

    #[test]
    fn slower_result_is_found_with_both_figures() {
        let measured = |median_us| {
            vec![Measurement {
                workload: "copy".to_owned(),
                dtype: "fp32".to_owned(),
                n: 8,
                at_ms: 1_763_640_000_000,
                time: Interval {
                    median_us,
                    low_us: median_us,
                    high_us: median_us,
                },
                gpumon: "0.2.0".to_owned(),
                cuda: None,
                limit_watts: None,
                sm_mhz: None,
            }]
        };
        let mut known = Benchmarks::default();
        known.save_baseline("GPU-a", "NVIDIA H200", measured(1000.0));
        assert_eq!(of_one(&known, 0, "GPU-a"), []);
        known.save_latest("GPU-a", measured(3000.0));
        let [finding] = &of_one(&known, 0, "GPU-a")[..] else {
            panic!()
        };
        let text = "below its baseline: copy (fp32) took 3.00 ms on 2025-11-20, and 1.00 ms on \
                    2025-11-20 at its baseline \
                    (0.33x)";
        assert_eq!(
            (finding.verdict, &*finding.check, &*finding.text),
            (Verdict::Warning, "gpu 0", text)
        );
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1250.0));
        let [finding] = &of_one(&known, 1, "GPU-b")[..] else {
            panic!()
        };
        assert!(
            finding.text.ends_with(
                "copy (fp32) took 1.25 ms on 2025-11-20, and 1.00 ms on another (0.80x)"
            )
        );
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1100.0));
        assert_eq!(of_one(&known, 1, "GPU-b"), []);
        assert_eq!(of_one(&known, 2, "GPU-c"), [], "no baseline is no finding");
    }
}
