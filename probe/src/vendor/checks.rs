//! Checks of the kernel drivers and their files for `gpumon doctor`. No check wakes a sleeping GPU.

use std::{collections::BTreeMap, io, path::Path, time::Duration};

use super::{
    LoggedError, Roots, amd, describe_error,
    drm::{Card, PowerState},
    intel, kernel_log,
    tasks::{Task, run_tasks},
};
use crate::model::{Severity, Vendor};

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
    let mut tasks = make_tasks(amd_cards, amd::check_card);
    tasks.extend(make_tasks(intel_cards, intel::check_card));
    findings.extend(run_tasks(tasks, MAX_CHECK_WAIT));
    findings
}

fn make_tasks(
    cards: Vec<Card>,
    check: fn(&Card) -> Vec<DriverFinding>,
) -> Vec<Task<DriverFinding>> {
    let awake = cards
        .into_iter()
        .filter(|card| card.power_state() == PowerState::Active);
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
pub fn check_driver_log(path: &Path) -> io::Result<Vec<DriverFinding>> {
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
            // If the problem persists, a condition of the GPU reports it, so a notice is enough
            // here.
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
