//! Checks of the kernel drivers for `gpumon doctor`, explanations of driver errors, and copies of
//! driver files for bug reports. None of these wakes a sleeping GPU.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::{
    ErrorInfo, LoggedError, Roots, amd,
    drm::{Card, Recorder, copy_client_files, is_node_of_awake_card},
    intel, kernel_log, nvml,
};
use crate::{
    model::{Severity, Vendor},
    surroundings::Surroundings,
};

pub use super::nvml::error::{Explanation, explain_absence};

/// A finding about a vendor's driver, as shown by `gpumon doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFinding {
    /// The subject of the check, in one or two words.
    pub check: &'static str,
    pub severity: Severity,
    /// The finding as a sentence.
    pub text: String,
    /// The suggested fix, worded as a clause.
    pub cure: Option<String>,
}

/// A file in `/dev` through which programs use a GPU. gpumon itself does not open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceNode {
    /// The path, for example `/dev/dri/renderD128`.
    pub path: String,
    pub vendor: Vendor,
}

/// The first minor number of render nodes. Lower numbers belong to `cardN`, the device nodes for
/// graphics output.
const FIRST_RENDER_MINOR: u32 = 128;

/// The maximum time to wait for the driver while checking the cards.
const MAX_CHECK_WAIT: Duration = Duration::from_secs(3);

/// Returns the AMD and Intel cards.
fn find_cards(roots: &Roots) -> [(Vendor, Vec<Card>); 2] {
    [
        (Vendor::Amd, amd::find_cards(&roots.sys)),
        (Vendor::Intel, intel::find_cards(&roots.sys)),
    ]
}

/// Checks the AMD and Intel drivers, and the files of all cards that are awake.
pub fn check_drivers(roots: &Roots) -> Vec<DriverFinding> {
    let [(_, amd_cards), (_, intel_cards)] = find_cards(roots);
    let mut findings = amd::BINDING.find_unbound_gpus(&roots.sys, &amd_cards);
    findings.extend(intel::BINDING.find_unbound_gpus(&roots.sys, &intel_cards));
    findings.extend(amd::check_topology(&roots.sys, &amd_cards));
    let mut tasks = make_check_tasks(amd_cards, amd::check_card);
    tasks.extend(make_check_tasks(intel_cards, intel::check_card));
    findings.extend(run_tasks(tasks, MAX_CHECK_WAIT));
    findings
}

fn make_check_tasks(
    cards: Vec<Card>,
    check: fn(&Card) -> Vec<DriverFinding>,
) -> Vec<Task<DriverFinding>> {
    let awake = cards.into_iter().filter(|card| !card.is_asleep());
    let task = |card| -> Task<DriverFinding> {
        Box::new(move |send| check(&card).into_iter().for_each(send))
    };
    awake.map(task).collect()
}

/// Returns the device files of the AMD and Intel GPUs.
pub fn device_nodes(roots: &Roots) -> Vec<DeviceNode> {
    let mut nodes = Vec::new();
    for (vendor, cards) in find_cards(roots) {
        if vendor == Vendor::Amd && !cards.is_empty() {
            let path = "/dev/kfd".to_owned();
            nodes.push(DeviceNode { path, vendor });
        }
        let minors = cards.iter().flat_map(|card| card.minors.clone());
        let minors = minors.filter(|minor| *minor >= FIRST_RENDER_MINOR);
        nodes.extend(minors.map(|minor| DeviceNode {
            path: format!("/dev/dri/renderD{minor}"),
            vendor,
        }));
    }
    nodes
}

/// Returns the errors that the AMD and Intel drivers wrote to the kernel log at `path`, as one
/// finding for each GPU and kind of error.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn find_logged_driver_errors(path: &Path) -> io::Result<Vec<DriverFinding>> {
    let messages = kernel_log::read_past_messages(path)?;
    let mut errors = Vec::new();
    for mut parser in [amd::log_parser(), intel::log_parser()] {
        errors.extend(messages.iter().flat_map(|message| parser.parse(message)));
    }
    let mut kinds: BTreeMap<(String, u32), Vec<LoggedError>> = BTreeMap::new();
    for error in errors {
        let kind = (error.pci_bus_id.clone(), error.error.code);
        kinds.entry(kind).or_default().push(error);
    }
    let findings = kinds.iter().filter_map(|((bus_id, code), errors)| {
        let info = describe_error(*code);
        let severity = match info.severity {
            Severity::Notice => return None,
            // An error that a program caused is only a notice here. If the error still affects the
            // GPU, a condition of the GPU reports this.
            Severity::Warning | Severity::Critical if info.by_program => Severity::Notice,
            Severity::Warning | Severity::Critical => Severity::Warning,
        };
        let times = match errors.len() {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        let last = errors
            .last()
            .and_then(|error| error.error.message.as_deref());
        let text = format!(
            "GPU at {bus_id}: {} ({times} in the log); the last message is `{}`",
            info.name,
            last.unwrap_or_default()
        );
        Some(DriverFinding {
            check: "kernel log",
            severity,
            text,
            cure: Some(info.advice.to_owned()),
        })
    });
    Ok(findings.collect())
}

/// The kernel drivers' sysfs folders. Each contains a link to every GPU that the driver uses.
pub const KERNEL_DRIVERS: [&str; 4] = [
    "/sys/bus/pci/drivers/nvidia",
    "/sys/bus/pci/drivers/amdgpu",
    "/sys/bus/pci/drivers/i915",
    "/sys/bus/pci/drivers/xe",
];

/// Returns the ranges of error codes that [`describe_error`] explains: NVIDIA's Xids, and gpumon's
/// own codes for AMD and Intel.
pub fn error_codes() -> [Range<u32>; 3] {
    [1..1000, amd::ERRORS.codes(), intel::ERRORS.codes()]
}

/// Explains an error code. NVIDIA's codes are Xids. gpumon defines the codes for AMD and Intel.
pub fn describe_error(code: u32) -> ErrorInfo {
    let tables = [&amd::ERRORS, &intel::ERRORS];
    let known = tables.iter().find_map(|table| table.describe(code));
    known.unwrap_or_else(|| nvml::xid::describe_xid(code))
}

/// Returns advice on how to reset a GPU, as a clause.
pub fn reset_advice(vendor: Vendor, surroundings: Surroundings) -> &'static str {
    match vendor {
        Vendor::Nvidia => {
            nvml::error::explain(nvml::query::Code::RESET_REQUIRED.0, surroundings).cure
        }
        Vendor::Amd | Vendor::Intel => "reboot the machine if this persists",
    }
}

/// Returns advice on how to find the driver's log messages, as a clause.
pub fn log_advice(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "see `dmesg | grep -i nvrm`",
        Vendor::Amd => "see `dmesg | grep amdgpu`",
        Vendor::Intel => "see `dmesg | grep -e i915 -e xe`",
    }
}

/// Returns the `docker run` options that give a container access to a vendor's GPUs. NVIDIA's
/// container tools add the device files themselves.
pub fn container_device_options(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Amd => "--device /dev/kfd --device /dev/dri",
        Vendor::Nvidia | Vendor::Intel => "--device /dev/dri",
    }
}

/// Returns advice for a version mismatch between the library and the kernel driver, as a clause.
pub fn version_mismatch_advice(surroundings: Surroundings) -> &'static str {
    nvml::error::explain(nvml::query::Code::VERSION_MISMATCH.0, surroundings).cure
}

/// Checks that the kernel log can be opened.
///
/// # Errors
/// Returns an error if the system does not allow reading the log.
pub fn check_kernel_log(path: &Path) -> io::Result<()> {
    kernel_log::open_at_end(path).map(drop)
}

/// Returns the GPU drivers' messages in the kernel log. Each starts with its time in microseconds
/// since boot.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn read_kernel_messages(path: &Path) -> io::Result<Vec<String>> {
    kernel_log::read_driver_messages(path)
}

/// A copy of a system file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFile {
    /// The file's path relative to `/sys` or `/proc`, prefixed with `sysfs` or `procfs`.
    pub path: PathBuf,
    pub content: FileContent,
}

/// A file's content, or a symbolic link's target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// The parts of a regular file's content, in order.
    Parts(Vec<FilePart>),
    /// The target of a symbolic link.
    Link(PathBuf),
}

/// A part of a file. All variants except `Plain` contain data that identifies a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePart {
    /// Bytes that do not identify a GPU.
    Plain(Vec<u8>),
    /// An ID as 16 hexadecimal digits, regardless of its format in the file.
    Id(String),
    Serial(String),
}

/// The maximum total time to wait for the drivers.
const MAX_COPY_WAIT: Duration = Duration::from_secs(10);

/// Copies the files of all AMD and Intel cards, and the files of processes that have a card open.
///
/// The copies have the same paths as the originals, so gpumon can read the copies instead. A file
/// is skipped if reading it wakes a GPU, changes a counter, or takes a second.
pub fn collect_card_files(roots: &Roots) -> Vec<SystemFile> {
    let amd_cards = amd::find_cards(&roots.sys);
    let intel_cards = intel::find_cards(&roots.sys);
    if amd_cards.is_empty() && intel_cards.is_empty() {
        return Vec::new();
    }
    let mut tasks = vec![make_processes_task(&roots.proc, &amd_cards, &intel_cards)];
    if !amd_cards.is_empty() {
        let sys = roots.sys.clone();
        tasks.push(Box::new(move |send| {
            amd::copy_driver_files(&Recorder::new(&sys, "sysfs", send));
        }));
    }
    tasks.extend(make_copy_tasks(roots, amd_cards, amd::copy_card_files));
    tasks.extend(make_copy_tasks(roots, intel_cards, intel::copy_card_files));
    let mut files = run_tasks(tasks, MAX_COPY_WAIT);
    // A bridge's files are copied once for each card behind it, so duplicates are removed.
    let mut known = BTreeSet::new();
    files.retain(|file| known.insert(file.path.clone()));
    files
}

/// Returns tasks that copy the files of one card each.
fn make_copy_tasks(
    roots: &Roots,
    cards: Vec<Card>,
    copy: fn(&Recorder<'_>, &Card),
) -> impl Iterator<Item = Task<SystemFile>> {
    cards.into_iter().map(move |card| -> Task<SystemFile> {
        let sys = roots.sys.clone();
        Box::new(move |send| copy(&Recorder::new(&sys, "sysfs", send), &card))
    })
}

/// Returns a task that copies the procfs files of processes that have an awake card open.
fn make_processes_task(
    proc_root: &Path,
    amd_cards: &[Card],
    intel_cards: &[Card],
) -> Task<SystemFile> {
    let cards: Vec<_> = amd_cards.iter().chain(intel_cards).cloned().collect();
    let proc_root = proc_root.to_owned();
    Box::new(move |send| {
        let may_read = move |minor| is_node_of_awake_card(&cards, minor);
        let recorder = Recorder::new(&proc_root, "procfs", send);
        recorder.copy(Path::new(""), &["meminfo"]);
        // PIDs inside a container differ from those that the drivers report. This link shows
        // whether the processes run in a container.
        let namespace = Path::new("self/ns/pid");
        if let Ok(target) = fs::read_link(proc_root.join(namespace)) {
            recorder.add_link(namespace, target);
        }
        copy_client_files(&recorder, &proc_root, &may_read);
    })
}

/// A task that delivers its results to a callback, one by one.
type Task<T> = Box<dyn FnOnce(&dyn Fn(T)) + Send>;

/// Runs each task on its own thread, and returns the results that arrive within `patience`, in the
/// order of the tasks. If a task hangs in a driver, it is abandoned.
fn run_tasks<T: Send + 'static>(tasks: Vec<Task<T>>, patience: Duration) -> Vec<T> {
    let (sender, results) = mpsc::channel();
    for (place, task) in tasks.into_iter().enumerate() {
        let sender = sender.clone();
        let run = move || {
            task(&|result| {
                // If the result is too late, there is no receiver, so sending fails.
                let _ = sender.send((place, result));
            });
        };
        // If the thread cannot be started, the task delivers no results.
        let _ = thread::Builder::new()
            .name("driver-files".to_owned())
            .spawn(run);
    }
    drop(sender);
    let begun = Instant::now();
    let mut found = Vec::new();
    while let Ok(result) = results.recv_timeout(patience.saturating_sub(begun.elapsed())) {
        found.push(result);
    }
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use fake_drm::{Tree, products, scenario};

    use super::*;
    use crate::vendor::drm::testing::make_roots;

    #[test]
    fn healthy_machines_have_no_findings() {
        for machine in scenario::SCENARIOS {
            let tree = Tree::new();
            (machine.build)(&tree);
            let findings = check_drivers(&make_roots(&tree));
            let findings = findings.into_iter().filter(|own| own.check != "compute");
            assert_eq!(findings.collect::<Vec<_>>(), [], "{}", machine.name);
        }
    }

    #[test]
    fn checks_do_not_wake_sleeping_card() {
        let cards = [
            (products::make_radeon("0000:03:00.0"), true),
            (products::make_arc_b580("0000:03:00.0"), false),
        ];
        for (card, is_amd) in cards {
            let tree = Tree::new();
            let files = tree.add_card(0, &card);
            files.suspend_card();
            let opened = files.record_opened_files();
            check_drivers(&make_roots(&tree));
            device_nodes(&make_roots(&tree));
            let opened: Vec<_> = opened.take_waking_files(is_amd).into_iter().collect();
            assert_eq!(opened, [""; 0]);
        }
    }

    #[test]
    fn partitions_have_separate_device_nodes() {
        let tree = Tree::new();
        scenario::add_mi300x_in_cpx(&tree);
        let nodes = device_nodes(&make_roots(&tree));
        let paths: Vec<_> = nodes.iter().map(|node| node.path.as_str()).collect();
        assert_eq!(paths[..2], ["/dev/kfd", "/dev/dri/renderD128"]);
        assert_eq!((paths.len(), paths[16]), (17, "/dev/dri/renderD143"));
    }
}

#[cfg(test)]
mod tasks_tests {
    use super::*;

    #[test]
    fn hanging_task_does_not_delay_other_tasks() {
        let tasks: Vec<Task<u32>> = vec![
            Box::new(|send| {
                send(1);
                thread::sleep(Duration::from_mins(1));
                send(2);
            }),
            Box::new(|send| send(3)),
        ];
        assert_eq!(run_tasks(tasks, Duration::from_secs(1)), [1, 3]);
    }
}

#[cfg(test)]
mod recording_tests {
    use std::{io, os::unix::fs::symlink};

    use fake_drm::{Client, Process, Tree, products, scenario};

    use super::*;
    use crate::{
        model::{Absence, Gpu, GpuDetails, GpuSample},
        vendor::{
            SourceChoice,
            drm::testing::{find_recorded_cards, make_roots, read_details, read_sample},
        },
    };

    fn record(tree: &Tree) -> Vec<SystemFile> {
        collect_card_files(&make_roots(tree))
    }

    fn write_copy(file: &SystemFile, folder: &Path) -> io::Result<()> {
        let place = folder.join(&file.path);
        fs::create_dir_all(place.parent().unwrap())?;
        match &file.content {
            FileContent::Link(target) => symlink(target, place),
            FileContent::Parts(parts) => {
                let bytes = parts.iter().flat_map(|part| match part {
                    FilePart::Plain(bytes) => bytes.clone(),
                    FilePart::Id(text) | FilePart::Serial(text) => text.clone().into(),
                });
                fs::write(place, bytes.collect::<Vec<_>>())
            }
        }
    }

    type Readings = (Gpu, Option<(GpuSample, GpuDetails)>);

    /// Reads all GPUs that are awake. Returns an empty vector if there is no driver.
    fn read_all(choice: &SourceChoice, roots: &Roots) -> Vec<Readings> {
        let Ok(source) = choice.open(roots) else {
            return Vec::new();
        };
        let read_one = |index| {
            let Ok(mut device) = source.open(index) else {
                return (source.identify_closed(index, &Absence::Asleep), None);
            };
            let sample = read_sample(&mut *device).unwrap();
            let details = read_details(&mut *device);
            (device.identify(), Some((sample, details)))
        };
        (0..source.device_count().unwrap()).map(read_one).collect()
    }

    /// Checks that reading a copy of a machine's files yields the same readings as reading the
    /// originals.
    #[track_caller]
    fn check_copy(name: &str, tree: &Tree) {
        let folder = tempfile::tempdir().unwrap();
        for file in record(tree) {
            write_copy(&file, folder.path()).unwrap();
        }
        let copy = Roots {
            sys: folder.path().join("sysfs"),
            proc: folder.path().join("procfs"),
            ..Roots::default()
        };
        for choice in [SourceChoice::Amd, SourceChoice::Intel] {
            let original = read_all(&choice, &make_roots(tree));
            assert_eq!(read_all(&choice, &copy), original, "{name}");
        }
    }

    #[test]
    fn bundle_copy_of_machine_gives_same_readings() {
        for machine in scenario::SCENARIOS {
            let tree = Tree::new();
            (machine.build)(&tree);
            check_copy(machine.name, &tree);
        }
        let tree = Tree::new();
        tree.add_card(0, &products::make_radeon("0000:03:00.0").with_pcie_switch());
        check_copy("a card with a switch", &tree);
    }

    #[test]
    fn bundle_copy_of_recorded_card_gives_same_readings() {
        for (name, card) in [find_recorded_cards("amd"), find_recorded_cards("intel")].concat() {
            let tree = Tree::new();
            tree.add_recorded_card(&card);
            check_copy(&name, &tree);
        }
    }

    #[test]
    fn forbidden_files_and_program_names_are_not_copied() {
        let tree = Tree::new();
        let card = products::make_mi300x("0000:83:00.0");
        let files = tree.add_card(1, &card);
        files.write(&[("pcie_bw", "1 2 3"), ("xgmi_error", "0")]);
        let client =
            Client::new("amdgpu", card.address(), 7).with_line("drm-client-name", "secret");
        tree.add_process(&Process::new(77, "python3").with_open_card(129, &client));
        let opened = files.record_opened_files();
        let copies = record(&tree);
        let opened = opened.take_opened_files();
        assert!(opened.contains("gpu_metrics"), "{opened:?}");
        assert!(!opened.contains("pcie_bw") && !opened.contains("xgmi_error"));
        let has = |place: &str| copies.iter().any(|file| file.path == Path::new(place));
        let descriptor = copies
            .iter()
            .find(|file| file.path.starts_with("procfs/77/fd"));
        let number = descriptor.unwrap().path.file_name().unwrap();
        assert!(has(&format!("procfs/77/fdinfo/{}", number.display())));
        assert!(!format!("{copies:?}").contains("secret"));
    }

    #[test]
    fn recording_does_not_wake_sleeping_card() {
        for (card, is_amd) in [
            (products::make_radeon("0000:03:00.0"), true),
            (products::make_arc_b580("0000:03:00.0"), false),
        ] {
            let tree = Tree::new();
            let files = tree.add_card(0, &card);
            files.suspend_card();
            let client = Client::new("amdgpu", card.address(), 7);
            tree.add_process(&Process::new(77, "python3").with_open_card(128, &client));
            let opened = files.record_opened_files();
            let copies = record(&tree);
            assert_eq!(
                opened
                    .take_waking_files(is_amd)
                    .into_iter()
                    .collect::<Vec<_>>(),
                [""; 0]
            );
            let has = |end: &str| copies.iter().any(|file| file.path.ends_with(end));
            assert!(has("uevent") && has("power/runtime_status") && !has("fdinfo/3"));
        }
        assert_eq!(record(&Tree::new()), []);
    }
}
