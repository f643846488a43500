//! The driver's readings of GPUs while they work, with their summary and the other processes on a
//! GPU. The GPUs are read on a separate thread, so that a hanging driver does not delay the work.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use gpumon_probe::{
    bounded,
    model::{Gpu, GpuSample, Health, Process, ProcessKind, Reading, ThrottleCause},
    stat::{Stat, Window},
    usage::EnergyMeter,
    vendor::ReadDepth,
};
use rustix::process::geteuid;

use crate::protocol::{Load, OtherProcesses, readings::OtherProcess};

/// The maximum number of samples kept for a GPU, enough for ten minutes.
const MAX_SAMPLES: usize = 6000;
/// The time limit for the first reading. If it is exceeded, the work starts without readings.
/// `gpumon doctor` shows why there are none.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which the driver may still list a process after it has ended.
const LISTING_DELAY: Duration = Duration::from_millis(400);
/// The minimum time for a measurement of energy. The counter changes ten times a second, and three
/// changes are needed.
const MIN_ENERGY_MS: u64 = 300;

/// A reader of GPUs that uses the driver's management library.
pub trait DriverReader: Send + Sync {
    /// Returns the GPUs of all vendors. The call takes as long as the drivers take to respond.
    fn list_gpus(&self) -> Vec<Gpu>;

    /// Reads all GPUs at this interval, and passes each sample to `on_sample` until that returns
    /// `Break`. Returns early if there is nothing to read.
    fn read_gpus(
        &self,
        depth: ReadDepth,
        interval: Duration,
        on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
    );
}

/// Returns the interval between readings. A full reading includes all counters, which the driver
/// updates every 200 ms. Smaller readings are taken twice as often, because they do not slow down
/// the work that is measured.
fn read_interval(depth: ReadDepth) -> Duration {
    Duration::from_millis(if depth == ReadDepth::Full { 200 } else { 100 })
}

/// The samples of each GPU, by UUID.
type Samples = BTreeMap<String, Vec<GpuSample>>;

/// The driver's readings of some GPUs. They continue until this value is dropped.
pub(super) struct GpuReadings {
    samples: Arc<Mutex<Samples>>,
    /// The PIDs of the processes that were computing before the work began, by the UUID of the GPU.
    before: BTreeMap<String, Vec<u32>>,
}

impl GpuReadings {
    pub(super) fn empty() -> Self {
        Self {
            samples: Arc::default(),
            before: BTreeMap::new(),
        }
    }

    /// Starts to read the GPUs with these UUIDs, and waits for the first readings. If there is no
    /// driver, or if the driver does not know a GPU, its readings stay empty.
    pub(super) fn start(
        driver: &Arc<dyn DriverReader>,
        uuids: Vec<String>,
        depth: ReadDepth,
    ) -> Self {
        let mut readings = Self::empty();
        if uuids.is_empty() {
            return readings;
        }
        let (kept, driver) = (Arc::clone(&readings.samples), Arc::clone(driver));
        let (sender, first) = mpsc::channel();
        thread::spawn(move || {
            driver.read_gpus(depth, read_interval(depth), &mut |gpus| {
                for gpu in gpus.iter().filter(|gpu| gpu.health == Health::Ok) {
                    if let Some(uuid) = gpu.uuid.as_ref().filter(|uuid| uuids.contains(uuid)) {
                        push_bounded_sample(
                            lock_samples(&kept).entry(uuid.clone()).or_default(),
                            gpu,
                        );
                    }
                }
                // The receiver only waits for the first sample. Later, it no longer exists, and
                // sending fails.
                let _ = sender.send(());
                // If this thread is the only owner of the samples, nobody needs them anymore, so
                // reading ends.
                if Arc::strong_count(&kept) == 1 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        });
        // Waiting fails if the thread has already ended. The work then starts without readings.
        let _ = first.recv_timeout(START_TIMEOUT);
        let samples = lock_samples(&readings.samples);
        let pids =
            |samples: &Vec<GpuSample>| samples.last().map(computing_pids).unwrap_or_default();
        let before = samples
            .iter()
            .map(|(uuid, samples)| (uuid.clone(), pids(samples)))
            .collect();
        drop(samples);
        readings.before = before;
        readings
    }

    /// Returns the processes of other users that are computing on a GPU. If there are any, the
    /// result is that of a second check a moment later, because the driver may list a process that
    /// has already ended.
    pub(super) fn processes_of_other_users(&self, uuid: &str) -> OtherProcesses {
        let now = || {
            lock_samples(&self.samples)
                .get(uuid)
                .and_then(|samples| samples.last())
                .map(find_processes_of_others)
        };
        let others = now().unwrap_or_default();
        if others.is_empty() {
            return others;
        }
        thread::sleep(LISTING_DELAY);
        now().unwrap_or_default()
    }

    /// Returns a summary of a GPU's readings in a time range, in milliseconds since 1970. Returns
    /// `None` if there are no readings.
    pub(super) fn load_between(&self, uuid: &str, from_ms: u64, to_ms: u64) -> Option<Load> {
        let before = self.before.get(uuid).map_or(&[][..], Vec::as_slice);
        summarize_load(
            lock_samples(&self.samples).get(uuid)?,
            from_ms,
            to_ms,
            before,
        )
    }

    pub(super) fn samples_of_gpu(&self, uuid: &str) -> Vec<GpuSample> {
        lock_samples(&self.samples)
            .get(uuid)
            .cloned()
            .unwrap_or_default()
    }

    /// Returns a GPU's last power draw in watts and its last temperature in degrees Celsius.
    pub(super) fn last_watts_and_celsius(&self, uuid: &str) -> (Option<f64>, Option<f64>) {
        let samples = lock_samples(&self.samples);
        let last = samples.get(uuid).and_then(|samples| samples.last());
        (
            last.and_then(current_watts),
            last.and_then(|sample| value_read_now(&sample.temperature.gpu_celsius)),
        )
    }
}

fn push_bounded_sample(kept: &mut Vec<GpuSample>, gpu: &GpuSample) {
    kept.push(gpu.clone());
    let surplus = kept.len().saturating_sub(MAX_SAMPLES);
    kept.drain(..surplus);
}

fn lock_samples(samples: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the processes of other users that are computing on a GPU. A process that the operating
/// system does not know is in another container, and counts as another user's.
pub(super) fn find_processes_of_others(sample: &GpuSample) -> OtherProcesses {
    let listed = computing_processes(sample)
        .filter(|process| !is_owned_by_current_user(process.pid))
        .map(OtherProcess::from)
        .collect();
    OtherProcesses {
        listed,
        omitted: sample.processes_omitted,
    }
}

/// Returns all processes that computed in any of these samples, except this process and its
/// children. `before` contains the PIDs that were computing before the work began. The driver may
/// list this process under another PID, for example in a container. In this case, the first process
/// of an unknown user that is not in `before` is assumed to be this process.
pub(super) fn find_other_processes<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    before: &[u32],
) -> OtherProcesses {
    let mut found: Vec<OtherProcess> = Vec::new();
    let mut omitted = 0;
    for process in samples
        .inspect(|sample| omitted = sample.processes_omitted.max(omitted))
        .flat_map(computing_processes)
    {
        if !found.iter().any(|other| other.pid == process.pid) && !is_child(process.pid) {
            found.push(OtherProcess::from(process));
        }
    }
    let own = std::process::id();
    let own = found.iter().position(|other| other.pid == own);
    let own = own.or_else(|| {
        found
            .iter()
            .position(|other| other.user.is_none() && !before.contains(&other.pid))
    });
    if let Some(own) = own {
        found.remove(own);
    }
    OtherProcesses {
        listed: found,
        omitted,
    }
}

pub(super) fn computing_pids(sample: &GpuSample) -> Vec<u32> {
    computing_processes(sample)
        .map(|process| process.pid)
        .collect()
}

/// Returns the processes that are computing. Processes that only draw, such as a display server, do
/// not affect others.
fn computing_processes(sample: &GpuSample) -> impl Iterator<Item = &Process> {
    let processes = sample.processes.items().iter();
    processes.filter(|process| process.kind != ProcessKind::Graphics)
}

/// Returns `true` if the process has the same effective user as this process. A process that cannot
/// be seen counts as another user's.
fn is_owned_by_current_user(pid: u32) -> bool {
    status_numbers(pid, "Uid:").nth(1) == Some(geteuid().as_raw())
}

fn is_child(pid: u32) -> bool {
    status_numbers(pid, "PPid:").next() == Some(std::process::id())
}

/// Returns the numbers in a line of `/proc/PID/status`; none if the process cannot be seen.
fn status_numbers(pid: u32, line: &str) -> impl Iterator<Item = u32> {
    let status =
        bounded::read_text(format!("/proc/{pid}/status"), bounded::STAT_LIMIT).unwrap_or_default();
    let found = status
        .lines()
        .find_map(|own| own.strip_prefix(line))
        .unwrap_or_default();
    found
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Summarizes the samples in a time range, in milliseconds since 1970. Returns `None` if there are
/// no samples. `before` contains the PIDs that were computing before the work began.
pub(super) fn summarize_load(
    samples: &[GpuSample],
    from_ms: u64,
    to_ms: u64,
    before: &[u32],
) -> Option<Load> {
    let all = || {
        samples
            .iter()
            .filter(|sample| (from_ms..=to_ms).contains(&sample.at_ms))
    };
    let reasons = all()
        .filter_map(|sample| sample.throttle_reasons.value())
        .flatten();
    let mut throttled_by = BTreeMap::new();
    for reason in reasons.filter(|reason| reason.cause() != ThrottleCause::Idle) {
        let name = serde_json::to_value(reason).ok()?.as_str()?.to_owned();
        *throttled_by.entry(name).or_default() += 1;
    }
    let stat = |read: fn(&GpuSample) -> Option<f64>| -> Option<Stat> {
        all().filter_map(read).collect::<Window>().stat()
    };
    let count = all().count();
    (count > 0).then(|| Load {
        samples: count,
        sm_mhz: stat(|sample| value_read_now(&sample.clocks.sm_mhz).map(f64::from)),
        watts: stat(current_watts),
        limit_watts: all()
            .filter_map(|sample| sample.power.limit_watts.value())
            .next_back()
            .copied(),
        joules: total_joules(all(), from_ms, to_ms),
        celsius: stat(|sample| value_read_now(&sample.temperature.gpu_celsius)),
        share_at_clock: None,
        throttled_by,
        others: find_other_processes(all(), before),
    })
}

/// Returns the power draw of the board, if it was read for this sample.
pub(super) fn current_watts(sample: &GpuSample) -> Option<f64> {
    value_read_now(&sample.power.instant_watts).or_else(|| value_read_now(&sample.power.draw_watts))
}

/// Returns the energy for the whole time range. Returns `None` if the time between the readings of
/// the energy counter is less than half of the time range, or less than `MIN_ENERGY_MS`.
fn total_joules<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    from_ms: u64,
    to_ms: u64,
) -> Option<f64> {
    let meter: EnergyMeter = samples
        .filter_map(|sample| {
            Some((
                value_read_now(&sample.power.energy_joules_total)?,
                sample.at_ms,
            ))
        })
        .collect();
    let ((joules, read_ms), all_ms) = (meter.total_energy_and_time(), to_ms - from_ms);
    (read_ms >= MIN_ENERGY_MS && read_ms * 2 >= all_ms)
        .then(|| joules / read_ms as f64 * all_ms as f64)
}

/// Returns the value of a reading if it was read for this sample, and not earlier.
pub(super) fn value_read_now<T: Copy>(reading: &Reading<T>) -> Option<T> {
    match reading {
        Reading::Now(value) => Some(*value),
        Reading::Earlier { .. } | Reading::Absent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Reading};

    use super::*;

    /// A reader of one GPU. The temperature of the GPU rises with each sample.
    struct WarmingGpuReader;

    impl DriverReader for WarmingGpuReader {
        fn list_gpus(&self) -> Vec<Gpu> {
            Vec::new()
        }

        fn read_gpus(
            &self,
            _: ReadDepth,
            _: Duration,
            on_sample: &mut dyn FnMut(&[GpuSample]) -> ControlFlow<()>,
        ) {
            for at_ms in 1.. {
                let mut gpu = GpuSample::new_absent(
                    0,
                    Some("GPU-a".to_owned()),
                    at_ms,
                    Health::Ok,
                    &Absence::Unknown,
                );
                gpu.temperature.gpu_celsius = Reading::Now(at_ms as f64);
                if on_sample(&[gpu]).is_break() {
                    return;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn readings_of_requested_gpus_are_kept() {
        let driver: Arc<dyn DriverReader> = Arc::new(WarmingGpuReader);
        let readings = GpuReadings::start(&driver, vec!["GPU-a".to_owned()], ReadDepth::Metered);
        assert!(
            readings.last_watts_and_celsius("GPU-a").1.is_some()
                && !readings.samples_of_gpu("GPU-a").is_empty()
        );
        assert!(
            readings.load_between("GPU-a", 1, 1).is_some()
                && readings.load_between("GPU-a", 0, 0).is_none()
        );
        let of_another = GpuReadings::start(&driver, vec!["GPU-b".to_owned()], ReadDepth::Full);
        assert!(
            of_another.samples_of_gpu("GPU-a").is_empty()
                && of_another.processes_of_other_users("GPU-b").is_empty()
        );
    }
}

#[cfg(test)]
mod other_processes_tests {
    use gpumon_probe::model::{Absence, Health, Reading};

    use super::*;

    fn make_process(pid: u32, user: Option<&str>) -> Process {
        let absent = || Reading::Absent(Absence::Unknown);
        Process {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: absent(),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: Reading::Now("python".to_owned()),
            program: None,
            command: Reading::Absent(Absence::Unknown),
            user: user.map_or(Reading::Absent(Absence::Unknown), |user| {
                Reading::Now(user.to_owned())
            }),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: Reading::Absent(Absence::Unknown),
            mig: None,
            mps: false,
            owner: Reading::Absent(Absence::Unknown),
        }
    }

    fn make_sample(processes: Vec<Process>) -> GpuSample {
        let processes = Reading::Now(processes);
        GpuSample {
            processes,
            ..GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown)
        }
    }

    #[test]
    fn worker_and_graphics_processes_are_ignored() {
        let drawing = Process {
            kind: ProcessKind::Graphics,
            ..make_process(u32::MAX, Some("root"))
        };
        let all = make_sample(vec![
            make_process(std::process::id(), Some("me")),
            make_process(u32::MAX, None),
            drawing,
        ]);
        let foreign = find_processes_of_others(&all);
        assert_eq!(
            foreign.to_string(),
            format!("python {} of an unknown user", u32::MAX)
        );
        assert_eq!(super::computing_pids(&all).len(), 2);
    }

    #[test]
    fn worker_process_is_found_despite_foreign_pid() {
        let pids = |others: &OtherProcesses| {
            others
                .listed
                .iter()
                .map(|other| other.pid)
                .collect::<Vec<_>>()
        };
        let own = std::process::id();
        let seen = make_sample(vec![
            make_process(7, Some("ana")),
            make_process(own, Some("me")),
            make_process(8, None),
        ]);
        assert_eq!(
            pids(&find_other_processes([&seen, &seen].into_iter(), &[])),
            [7, 8]
        );
        let elsewhere = make_sample(vec![
            make_process(7, None),
            make_process(8, None),
            make_process(9, None),
        ]);
        assert_eq!(
            pids(&find_other_processes([&elsewhere].into_iter(), &[7, 9])),
            [7, 9]
        );
        assert!(find_other_processes([].into_iter(), &[]).is_empty());
    }

    #[test]
    fn child_processes_are_ignored() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let seen = make_sample(vec![
            make_process(child.id(), Some("me")),
            make_process(std::process::id(), Some("me")),
        ]);
        assert!(find_other_processes([&seen].into_iter(), &[]).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn many_processes_are_counted() {
        let many = make_sample(
            (1..6)
                .map(|more| make_process(u32::MAX - more, Some("ana")))
                .collect(),
        );
        assert!(
            find_processes_of_others(&many)
                .to_string()
                .ends_with(", and 2 more")
        );
    }

    #[test]
    fn gpu_with_truncated_process_list_counts_as_used() {
        let cut = |processes, processes_omitted| GpuSample {
            processes_omitted,
            ..make_sample(processes)
        };
        let own = make_process(std::process::id(), Some("me"));
        let foreign = find_processes_of_others(&cut(vec![own], 976));
        assert!(!foreign.is_empty() && !foreign.has_listed_processes());
        assert_eq!(foreign.to_string(), "976 processes that are not listed");
        let one = find_processes_of_others(&cut(vec![make_process(u32::MAX, Some("ana"))], 1));
        assert!(
            one.to_string()
                .ends_with(" of ana, and 1 process that is not listed"),
            "{one}"
        );
        let meanwhile = find_other_processes([&cut(vec![], 2), &cut(vec![], 0)].into_iter(), &[]);
        assert_eq!(
            serde_json::to_string(&meanwhile).unwrap(),
            r#"{"others":[],"others_omitted":2}"#
        );
    }
}

#[cfg(test)]
mod load_tests {
    use gpumon_probe::model::{Absence, Health, ThrottleReason};

    use super::*;

    fn make_sample(at_ms: u64) -> GpuSample {
        GpuSample::new_absent(0, None, at_ms, Health::Ok, &Absence::Unknown)
    }

    #[test]
    fn samples_are_summarized_unless_range_is_empty() {
        let mut hot = make_sample(10);
        hot.power.draw_watts = Reading::Now(500.0);
        hot.power.instant_watts = Reading::Now(690.0);
        hot.power.limit_watts = Reading::Now(700.0);
        hot.throttle_reasons =
            Reading::Now(vec![ThrottleReason::SwPowerCap, ThrottleReason::GpuIdle]);
        let mut cool = make_sample(20);
        cool.power.draw_watts = Reading::Now(120.0);
        cool.temperature.gpu_celsius = Reading::Earlier {
            value: 99.0,
            at_ms: 1,
        };
        let samples = [make_sample(5), hot.clone(), cool, make_sample(25)];
        let load = summarize_load(&samples, 6, 24, &[]).unwrap();
        assert_eq!(
            (load.samples, load.watts),
            (
                2,
                Some(Stat {
                    min: 120.0,
                    mean: 405.0,
                    max: 690.0
                })
            )
        );
        assert_eq!(load.limit_watts, Some(700.0), "the last that is known");
        assert_eq!(
            (load.sm_mhz, load.celsius, load.joules),
            (None, None, None),
            "what is not known is left out"
        );
        assert_eq!(
            load.throttled_by,
            BTreeMap::from([("sw_power_cap".to_owned(), 1)])
        );
        assert_eq!(load.main_throttle_reason(), None);
        assert_eq!(
            summarize_load(&[hot], 10, 10, &[])
                .unwrap()
                .main_throttle_reason(),
            Some("sw_power_cap")
        );
        assert_eq!(summarize_load(&samples, 11, 19, &[]), None);
    }

    #[test]
    fn energy_requires_long_enough_span() {
        let counted = |at_ms, joules| {
            let mut sample = make_sample(at_ms);
            sample.power.energy_joules_total = Reading::Now(joules);
            sample
        };
        let of =
            |samples: &[GpuSample], to_ms| summarize_load(samples, 0, to_ms, &[]).unwrap().joules;
        let samples = [
            counted(100, 1000.0),
            counted(300, 1100.0),
            counted(500, 1200.0),
        ];
        assert_eq!(of(&samples, 600), Some(300.0));
        assert_eq!(of(&samples, 1000), None, "less than half of it was read");
        assert_eq!(of(&samples[..2], 350), None, "too short");
    }
}
