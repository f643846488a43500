//! Copying of the files from which AMD and Intel GPUs are read, for bug reports.
//!
//! The copies have the same paths as the originals, so gpumon can read the copies instead. A file
//! is skipped if reading it wakes a GPU, changes a counter, or takes a second.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Roots, amd,
    drm::{Card, PowerState, Recorder, record_clients},
    intel,
    tasks::{Task, run_tasks},
};

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
pub fn record_files(roots: &Roots) -> Vec<SystemFile> {
    let amd_cards = amd::find_cards(&roots.sys);
    let intel_cards = intel::find_cards(&roots.sys);
    if amd_cards.is_empty() && intel_cards.is_empty() {
        return Vec::new();
    }
    let mut tasks = vec![make_processes_task(&roots.proc, &amd_cards, &intel_cards)];
    if !amd_cards.is_empty() {
        let sys = roots.sys.clone();
        tasks.push(Box::new(move |send| {
            amd::record_driver(&Recorder::new(&sys, "sysfs", send));
        }));
    }
    let records = amd_cards
        .into_iter()
        .map(|card| (card, amd::record_card as fn(&Recorder<'_>, &Card)));
    let records = records.chain(
        intel_cards
            .into_iter()
            .map(|card| (card, intel::record_card as fn(&Recorder<'_>, &Card))),
    );
    tasks.extend(records.map(|(card, record)| -> Task<SystemFile> {
        let sys = roots.sys.clone();
        Box::new(move |send| record(&Recorder::new(&sys, "sysfs", send), &card))
    }));
    let mut files = run_tasks(tasks, MAX_COPY_WAIT);
    // Cards behind the same bridge each include the bridge's files, so duplicates are removed.
    let mut known = BTreeSet::new();
    files.retain(|file| known.insert(file.path.clone()));
    files
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
        let may_read = move |minor| {
            let mut own = cards.iter().filter(|card| card.minors.contains(&minor));
            own.next()
                .is_some_and(|card| card.power_state() == PowerState::Active)
        };
        let recorder = Recorder::new(&proc_root, "procfs", send);
        recorder.copy(Path::new(""), &["meminfo"]);
        // This link reveals whether the processes run in a container, where PIDs differ from the
        // PIDs that the drivers report.
        let namespace = Path::new("self/ns/pid");
        if let Ok(target) = fs::read_link(proc_root.join(namespace)) {
            recorder.add_link(namespace, target);
        }
        record_clients(&recorder, &proc_root, &may_read);
    })
}

#[cfg(test)]
mod tests {
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
        record_files(&make_roots(tree))
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
    fn copied_machine_files_give_equal_readings() {
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
    fn copied_board_recordings_give_equal_readings() {
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
        tree.add_process(&Process::new(77, "python3").open_card(129, &client));
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
            tree.add_process(&Process::new(77, "python3").open_card(128, &client));
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
