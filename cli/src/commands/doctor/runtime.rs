//! Checks of gpumon itself: the user's server, the settings files, benchmark results, and the
//! environment in which gpumon runs.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use gpumon_history::span::Storage;
use gpumon_probe::{
    benchmarks::{self, Benchmarks, FILE_NAME, Measurement},
    model::GpuSample,
    surroundings::Surroundings,
    vendor::{self, KERNEL_LOG},
};
use gpumon_server::frame::{CollectorState, CollectorStatus};
use rustix::process::geteuid;
use serde::Deserialize;
use serde_json::Value;

use super::{gpus::format_gpu_name, machine::Machine, report::Finding};
use crate::{
    commands::bench::{format_microseconds, format_time_with_date},
    config::{self, ParsedFile, UnreadableFile, ValueType},
    describe::format_unlisted_processes,
    local_server::{self, NoServerError, ServerArgs},
    snapshot::{DriverAnswer, DriverState},
    terminal::units::format_count,
};

/// The checked fields of `/api/v1/snapshot`. The other fields may have the format of another
/// version.
#[derive(Debug, Deserialize)]
struct CheckedSnapshot {
    version: String,
    collector: CollectorStatus,
}

/// The server's snapshot and storage state.
pub(super) struct ServerResponse {
    pub(super) socket: String,
    pub(super) snapshot: Result<Value, String>,
    /// The location where the server stores history; `None` if an older server does not report
    /// this.
    pub(super) storage: Option<Storage>,
}

/// Requests a snapshot and the state of the history storage from the server.
pub(super) fn fetch_server_state(server: &ServerArgs) -> Result<ServerResponse, NoServerError> {
    let connection = server.connect()?;
    let socket = connection.path.display().to_string();
    let snapshot = parse_response(connection.send_get_request("/api/v1/snapshot"));
    let history = server.connect().ok().and_then(|server| {
        parse_response(server.send_get_request("/api/v1/history?points=1")).ok()
    });
    let storage = history.and_then(|history| Storage::deserialize(&history["storage"]).ok());
    Ok(ServerResponse {
        socket,
        snapshot,
        storage,
    })
}

fn parse_response(answer: io::Result<local_server::LocalResponse>) -> Result<Value, String> {
    match answer {
        Ok(answer) if answer.status == 200 => {
            serde_json::from_str(&answer.body).map_err(|error| describe_parse_error(&error))
        }
        Ok(answer) => Err(format!("the server responds with status {}", answer.status)),
        Err(error) => Err(format!("the server does not respond: {error}")),
    }
}

fn describe_parse_error(error: &serde_json::Error) -> String {
    format!("the server's response cannot be parsed: {error}")
}

pub(super) fn check_server(response: &Result<ServerResponse, NoServerError>) -> Finding {
    let check = "server";
    let ServerResponse {
        socket, snapshot, ..
    } = match response {
        Ok(response) => response,
        Err(none) => {
            return Finding::new_note(check, format!("none at {}", none.describe_sockets()))
                .with_cure(NoServerError::CURE);
        }
    };
    let snapshot = snapshot.as_ref().map_err(Clone::clone);
    match snapshot.and_then(|snapshot| {
        CheckedSnapshot::deserialize(snapshot).map_err(|error| describe_parse_error(&error))
    }) {
        Ok(CheckedSnapshot { version, collector }) => assess_server(socket, &version, &collector),
        Err(error) => Finding::new_warning(check, error, format!("restart the server at {socket}")),
    }
}

/// Reports where the server stores history, and whether the storage has a problem.
pub(super) fn check_history(response: &Result<ServerResponse, NoServerError>) -> Option<Finding> {
    let storage = response.as_ref().ok()?.storage.as_ref()?;
    let check = "history";
    let days = storage.reach_ms / (24 * 3_600_000);
    Some(match &storage.problem {
        // The problem's message already contains advice.
        Some(problem) => Finding::new_warning(
            check,
            problem,
            "after you have fixed the problem, wait a minute: the server retries automatically",
        ),
        None if storage.on_disk => Finding::new_ok(check, format!("on disk, for {days} days")),
        None => Finding::new_note(
            check,
            format!("in memory, for {} hours", storage.reach_ms / 3_600_000),
        )
        .with_cure("to keep history on disk, run `gpumon serve --data-dir DIR`"),
    })
}

fn assess_server(at: &str, version: &str, collector: &CollectorStatus) -> Finding {
    let message = collector.message.clone().unwrap_or_default();
    let check = "server";
    match collector.state {
        CollectorState::Running => {
            let through = collector
                .joined
                .as_ref()
                .map(|socket| format!(" through the server at {socket}"))
                .unwrap_or_default();
            Finding::new_ok(
                check,
                format!("{version} at {at}, reading the GPUs{through}"),
            )
        }
        CollectorState::Starting => {
            Finding::new_note(check, format!("{version} at {at}, starting"))
        }
        CollectorState::Paused => Finding::new_note(check, format!("{version} at {at}, {message}"))
            .with_cure(if collector.joined.is_some() {
                "`sudo gpumon resume`"
            } else {
                "`gpumon resume`"
            }),
        CollectorState::Restarting => Finding::new_warning(
            check,
            format!("{version} at {at}: {message}"),
            "the server retries automatically; see its log",
        ),
        CollectorState::Unavailable => {
            Finding::new_warning(check, format!("{version} at {at} has no readings"), message)
        }
    }
}

pub(super) struct Settings {
    files: Vec<(PathBuf, ParsedFile)>,
    unreadable: Vec<UnreadableFile>,
}

impl Settings {
    pub(super) fn read_files(named: Option<&Path>) -> Self {
        let (files, unreadable) = config::read_and_parse_files(named);
        Self { files, unreadable }
    }

    /// Returns one finding per settings file, with the number of mistakes in the file.
    pub(super) fn check_files(&self) -> impl Iterator<Item = Finding> {
        let warning = |text| Finding::new_warning("settings", text, "run `gpumon config check`");
        let unreadable = self
            .unreadable
            .iter()
            .map(move |file| warning(format!("a settings file cannot be read: {file}")));
        let read = self.files.iter().map(move |(path, parsed)| {
            let path = path.display();
            match parsed.mistakes.len() {
                0 => Finding::new_ok(
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

    /// Returns the data directory that is set in the settings files.
    pub(super) fn data_dir(&self) -> Option<PathBuf> {
        let mut entries = self.files.iter().flat_map(|(_, parsed)| &parsed.entries);
        let named = entries.rfind(|entry| entry.key.full_name() == "serve.data-dir")?;
        Some(named.texts.concat().into())
    }

    /// Returns the settings of all files as TOML, or `None` if no file exists. For free-form text,
    /// only the key is shown.
    pub(super) fn to_toml(&self) -> Option<String> {
        let mut text = String::new();
        for ((_, parsed), number) in self.files.iter().zip(1..) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "# file {number}; invalid settings that are ignored: {}",
                parsed.mistakes.len()
            );
            for entry in &parsed.entries {
                let is_word = !entry.key.arg.get_possible_values().is_empty();
                let is_shown =
                    is_word || !matches!(entry.key.value_type(), ValueType::Text | ValueType::List);
                let name = entry.key.full_name();
                let _ = if is_shown {
                    writeln!(text, "{name} = {}", entry.key.to_toml(&entry.texts))
                } else {
                    writeln!(text, "# {name} is set")
                };
            }
        }
        (!self.files.is_empty()).then_some(text)
    }
}

const BENCHMARK_ADVICE: &str = "check power limit, clocks and cooling, then run `gpumon bench \
                                --baseline` again, or `gpumon bench --save-baseline` if the change \
                                is intended";

pub(super) fn check_benchmarks(answer: &DriverAnswer, data_dir: Option<&Path>) -> Vec<Finding> {
    let Some(file) = data_dir.map(|folder| folder.join(FILE_NAME)) else {
        return Vec::new();
    };
    match benchmarks::read(&file) {
        Ok(known) => {
            let gpus = answer.inventory.gpus.iter();
            gpus.filter_map(|gpu| {
                Some(check_benchmarks_of_gpu(
                    &known,
                    gpu.index,
                    gpu.uuid.as_deref()?,
                ))
            })
            .flatten()
            .collect()
        }
        Err(error) => {
            let text = format!("{} cannot be read: {error}", file.display());
            let cure =
                "move the file away, and store baselines with `gpumon bench --save-baseline`";
            vec![Finding::new_warning("benchmarks", text, cure)]
        }
    }
}

fn check_benchmarks_of_gpu(known: &Benchmarks, index: u32, uuid: &str) -> Vec<Finding> {
    let took = |result: &Measurement| {
        let took = format_time_with_date(result.time.median_us, result.at_ms);
        format!("{} ({}) took {took}", result.workload, result.dtype)
    };
    let slower = known.find_worst_below_baseline(uuid).map(|below| {
        let (latest, before) = (took(&below.latest), &below.baseline);
        let before = format_time_with_date(before.time.median_us, before.at_ms);
        let ratio = below.ratio;
        format!("slower than its baseline: {latest}, baseline {before} ({ratio:.2}x the speed)")
    });
    let slowest = known.find_worst_below_siblings(uuid).map(|below| {
        let (own, theirs) = (
            took(&below.baseline),
            format_microseconds(below.siblings.median_us),
        );
        let others = match below.siblings.count {
            1 => "another".to_owned(),
            count => format!("{count} others"),
        };
        let ratio = below.ratio;
        format!(
            "slower than GPUs of the same model: {own}, compared with {theirs} on {others} \
             ({ratio:.2}x the speed)"
        )
    });
    let texts = slower.into_iter().chain(slowest);
    texts
        .map(|text| Finding::new_warning(format_gpu_name(index), text, BENCHMARK_ADVICE))
        .collect()
}

// Checks of gpumon's environment: a container, another PID namespace, or WSL.

pub(super) fn check_surroundings(machine: &Machine, driver: &DriverState) -> Vec<Finding> {
    let mut findings = Vec::new();
    if machine.is_wsl() {
        let text = "this is WSL: the Windows driver reports no processes and does not support \
         most of the readings listed below";
        findings.push(Finding::new_note("wsl", text));
    }
    if let Some(container) = machine.surroundings().container_name() {
        findings.push(Finding::new_note(
            "container",
            format!("gpumon runs in a container ({container})"),
        ));
    }
    findings.extend(
        driver
            .answer()
            .map(|answer| check_reported_pids(machine, answer)),
    );
    findings
}

/// Checks that the PIDs that the driver reports exist in this machine's `/proc`.
fn check_reported_pids(machine: &Machine, answer: &DriverAnswer) -> Finding {
    let processes: Vec<_> = answer
        .gpus()
        .filter_map(|gpu: &GpuSample| gpu.processes.value())
        .flatten()
        .collect();
    let pids = processes.iter().map(|process| process.pid.to_string());
    let strange: Vec<_> = pids
        .filter(|pid| !machine.roots().proc.join(pid).exists())
        .collect();
    let cure = "in a container, share the host's PIDs (docker run --pid=host, or hostPID: true in \
                the pod)";
    let unlisted = answer.gpus().filter_map(|gpu| {
        Some(format!(
            "GPU {}: {}",
            gpu.index,
            format_unlisted_processes(gpu)?
        ))
    });
    let unlisted = unlisted.collect::<Vec<_>>().join("; ");
    if !unlisted.is_empty() {
        return Finding::new_warning("processes", unlisted, cure);
    }
    if strange.is_empty() {
        return Finding::new_ok(
            "processes",
            format!("{} on the GPUs, all found in /proc", processes.len()),
        );
    }
    let some = strange[..strange.len().min(5)].join(", ");
    let more = if strange.len() > 5 { ", ..." } else { "" };
    let text = format!(
        "{} of the {} processes on the GPUs (PID {some}{more}) are not in this /proc, so their \
         users are unknown",
        strange.len(),
        processes.len()
    );
    Finding::new_warning("processes", text, cure)
}

pub(super) fn check_kernel_log(machine: &Machine, uses_nvidia: bool) -> Finding {
    let missed = if uses_nvidia {
        "Xids that NVML does not report (79, 119, 120)"
    } else {
        "driver errors"
    };
    match vendor::check_kernel_log(&machine.resolve_path(KERNEL_LOG)) {
        Ok(()) => Finding::new_ok("kernel log", "readable, so all driver errors are reported"),
        Err(error) => Finding::new_note(
            "kernel log",
            format!("{KERNEL_LOG} cannot be read ({error}), so {missed} are missed"),
        )
        .with_cure(describe_log_access_fix(
            machine.surroundings(),
            &error,
            geteuid().is_root(),
        )),
    }
}

fn describe_log_access_fix(
    surroundings: Surroundings,
    error: &io::Error,
    is_root: bool,
) -> &'static str {
    match surroundings {
        Surroundings::Docker => {
            "pass /dev/kmsg to the container, and run the container as root: `docker run --device \
             /dev/kmsg --cap-add SYSLOG --user 0`"
        }
        Surroundings::Podman => {
            "as root, start the container with /dev/kmsg: `podman run --device /dev/kmsg --cap-add \
             SYSLOG --user 0`"
        }
        Surroundings::Kubernetes => {
            "mount /dev/kmsg of the node into the pod (hostPath), and run its container as root \
             and privileged"
        }
        Surroundings::Lxc => "pass /dev/kmsg to the container, which must be privileged",
        Surroundings::Apptainer | Surroundings::Enroot => {
            "mount /dev/kmsg of the host into the container, and set kernel.dmesg_restrict to 0 on \
             the host"
        }
        Surroundings::Wsl => "the Windows driver writes no Xids to the kernel log",
        Surroundings::Machine if error.kind() == ErrorKind::NotFound => {
            "create /dev/kmsg (`mknod /dev/kmsg c 1 11`), or pass it to the container"
        }
        Surroundings::Machine if is_root => "give gpumon CAP_SYSLOG, which root lacks here",
        Surroundings::Machine => {
            "run gpumon as root or with CAP_SYSLOG, or set kernel.dmesg_restrict to 0"
        }
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::benchmarks::Interval;

    use super::super::report::Verdict;

    use super::*;

    #[test]
    fn server_without_gpu_causes_warning_unless_paused() {
        let verdict = |state| {
            let message = Some("why".to_owned());
            assess_server(
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
    fn history_storage_and_problem_are_reported() {
        let verdict = |on_disk, problem: Option<&str>| {
            let storage = Storage {
                on_disk,
                problem: problem.map(ToOwned::to_owned),
                reach_ms: 6 * 3_600_000,
            };
            let response = ServerResponse {
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
    fn failed_response_is_reported_with_reason() {
        let answered = |status, body: &str| {
            parse_response(Ok(local_server::LocalResponse {
                status,
                body: body.to_owned(),
            }))
        };
        assert_eq!(answered(200, "[1]"), Ok([1].into()));
        assert!(answered(200, "{").unwrap_err().contains("cannot be parsed"));
        assert!(answered(403, "{}").unwrap_err().contains("status 403"));
        assert!(
            parse_response(Err(io::ErrorKind::TimedOut.into()))
                .unwrap_err()
                .contains("does not respond")
        );
        let response = ServerResponse {
            socket: "/run/x".to_owned(),
            snapshot: Ok([1].into()),
            storage: None,
        };
        assert_eq!(check_server(&Ok(response)).verdict, Verdict::Warning);
    }

    #[test]
    fn benchmark_below_baseline_is_reported_with_both_times() {
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
        assert_eq!(check_benchmarks_of_gpu(&known, 0, "GPU-a"), []);
        known.save_latest("GPU-a", measured(3000.0));
        let [finding] = &check_benchmarks_of_gpu(&known, 0, "GPU-a")[..] else {
            panic!()
        };
        let text = "slower than its baseline: copy (fp32) took 3.00 ms on 2025-11-20, baseline \
                    1.00 ms on 2025-11-20 (0.33x the speed)";
        assert_eq!(
            (finding.verdict, &*finding.check, &*finding.text),
            (Verdict::Warning, "gpu 0", text)
        );
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1250.0));
        let [finding] = &check_benchmarks_of_gpu(&known, 1, "GPU-b")[..] else {
            panic!()
        };
        assert!(finding.text.ends_with(
            "copy (fp32) took 1.25 ms on 2025-11-20, compared with 1.00 ms on another (0.80x the \
             speed)"
        ));
        known.save_baseline("GPU-b", "NVIDIA H200", measured(1100.0));
        assert_eq!(check_benchmarks_of_gpu(&known, 1, "GPU-b"), []);
        assert_eq!(
            check_benchmarks_of_gpu(&known, 2, "GPU-c"),
            [],
            "no baseline is no finding"
        );
    }
}

#[cfg(test)]
mod surroundings_tests {
    use std::fs;

    use super::*;

    #[test]
    fn container_in_wsl_has_notes_about_both() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::with_root(root.path());
        assert_eq!(check_surroundings(&machine, &DriverState::Silent).len(), 0);
        fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        fs::write(
            root.path().join("proc/sys/kernel/osrelease"),
            "5.15.90.1-microsoft-standard-WSL2\n",
        )
        .unwrap();
        fs::write(root.path().join(".dockerenv"), "").unwrap();
        let checks: Vec<_> = check_surroundings(&machine, &DriverState::Silent)
            .into_iter()
            .map(|finding| finding.check)
            .collect();
        assert_eq!(checks, ["wsl", "container"]);
    }

    #[test]
    fn root_is_never_advised_to_become_root() {
        for (surroundings, kind, words) in [
            (
                Surroundings::Docker,
                ErrorKind::NotFound,
                "docker run --device /dev/kmsg",
            ),
            (
                Surroundings::Docker,
                ErrorKind::PermissionDenied,
                "--cap-add SYSLOG",
            ),
            (
                Surroundings::Podman,
                ErrorKind::NotFound,
                "podman run --device /dev/kmsg",
            ),
            (Surroundings::Kubernetes, ErrorKind::NotFound, "hostPath"),
            (
                Surroundings::Apptainer,
                ErrorKind::PermissionDenied,
                "dmesg_restrict",
            ),
            (Surroundings::Machine, ErrorKind::NotFound, "mknod"),
            (
                Surroundings::Machine,
                ErrorKind::PermissionDenied,
                "CAP_SYSLOG",
            ),
        ] {
            let cure = describe_log_access_fix(surroundings, &kind.into(), true);
            assert!(
                cure.contains(words) && !cure.contains("run gpumon as root"),
                "{surroundings:?} {kind}: {cure}"
            );
        }
        let user = describe_log_access_fix(
            Surroundings::Machine,
            &ErrorKind::PermissionDenied.into(),
            false,
        );
        assert!(user.contains("run gpumon as root"), "{user}");
    }
}
