//! Checks of AMD's drivers for `gpumon doctor`, and copies of their files for bug reports.

use std::path::{Path, PathBuf};

use super::{
    errors::ERROR_COUNT_SUFFIX,
    kfd,
    metrics::{Metrics, MetricsError},
    source::DRIVER_NAME,
};
use crate::{
    model::{Severity, Vendor},
    vendor::{
        DriverFinding, FilePart,
        drm::{self, Binding, Card, Recorder, check_sensors},
        log_advice,
    },
};

/// The kernel drivers for AMD's GPUs. PCI class 0x12 is for Instinct GPUs, which are accelerators
/// without a display.
pub(crate) static BINDING: Binding = Binding {
    vendor: Vendor::Amd,
    vendor_id: "0x1002",
    classes: &["0x03", "0x12"],
    drivers: &[DRIVER_NAME],
    old_driver: Some((
        "radeon",
        "for GPUs of the Radeon HD 7000 series and later, boot the kernel with \
         `radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1`",
    )),
    integrated: None,
};

/// Returns the cards of AMD's driver. A card's minor numbers include those of its partitions.
pub(crate) fn find_cards(sys_root: &Path) -> Vec<Card> {
    let mut cards = drm::find_cards(sys_root, &[DRIVER_NAME]);
    let nodes = kfd::find_nodes(&kfd::find_kfd_folder(sys_root));
    for card in &mut cards {
        let own = nodes
            .iter()
            .filter(|node| node.bus_id().as_ref() == Some(&card.bus_id));
        card.minors
            .extend(own.filter_map(kfd::KfdNode::render_minor));
        card.minors.sort_unstable();
        card.minors.dedup();
    }
    cards
}

/// Checks an awake card's sensors and the version of its metrics table.
pub(crate) fn check_card(card: &Card) -> Vec<DriverFinding> {
    let mut findings = Vec::new();
    findings.extend(check_sensors(card, log_advice(Vendor::Amd)));
    let table = card.device.read_bytes("gpu_metrics");
    let error = table.ok().and_then(|bytes| Metrics::decode(&bytes).err());
    // On old GPUs, the file is empty, which is not an error.
    findings.extend(
        error
            .filter(|error| *error != MetricsError::Empty)
            .map(|error| DriverFinding {
                check: "gpu_metrics",
                severity: Severity::Warning,
                text: format!(
                    "{}: {error}; readings from gpu_metrics are absent",
                    card.pci_address()
                ),
                cure: Some(
                    "update gpumon; if that does not help, report the problem with the file from \
                     `gpumon doctor --bundle`"
                        .to_owned(),
                ),
            }),
    );
    findings
}

/// Checks that the compute driver's topology exists and is completely readable.
pub(crate) fn check_topology(sys_root: &Path, cards: &[Card]) -> Option<DriverFinding> {
    if cards.is_empty() {
        return None;
    }
    let finding = |text: String, cure: &str| DriverFinding {
        check: "compute",
        severity: Severity::Notice,
        text,
        cure: Some(cure.to_owned()),
    };
    match kfd::count_hidden_nodes(sys_root) {
        Err(_) => Some(finding(
            "/sys/class/kfd cannot be read: partitions and ROCm programs are not shown".to_owned(),
            "use a kernel with CONFIG_HSA_AMD; in a container, mount the host's /sys",
        )),
        Ok(0) => None,
        Ok(hidden) => Some(finding(
            format!(
                "{hidden} GPUs in the KFD topology belong to other containers or jobs: their \
                 partitions and ROCm programs are not shown"
            ),
            "run gpumon outside of the container or job to see all GPUs",
        )),
    }
}

/// Files that can be read without waking the card.
const PASSIVE_FILES: [&str; 4] = [
    "product_name",
    "product_number",
    "vbios_version",
    "mem_info_*",
];

/// Files that can be read only while the card is awake. Two files are omitted: `pcie_bw` takes a
/// second to read, and reading `xgmi_error` clears its counter.
const AWAKE_FILES: [&str; 10] = [
    "gpu_busy_percent",
    "mem_busy_percent",
    "vcn_busy_percent",
    "gpu_metrics",
    "pp_dpm_*",
    "current_compute_partition",
    "current_memory_partition",
    "available_compute_partition",
    "pcie_replay_count",
    "ras/features",
];

const TOPOLOGY_FOLDER: &str = "class/kfd/kfd/topology";
const PROCESSES_FOLDER: &str = "class/kfd/kfd/proc";

/// The properties of a topology node that identify a GPU or a group of linked GPUs.
const ID_PROPERTIES: [&str; 2] = ["unique_id", "hive_id"];

pub(crate) fn copy_card_files(recorder: &Recorder<'_>, card: &Card) {
    let device = &recorder.copy_card(card).device;
    recorder.copy(device, &PASSIVE_FILES);
    recorder.copy_file_parts(device, &["unique_id"], |id| split_value(id, &make_id_part));
    recorder.copy_file_parts(device, &["serial_number"], |serial| {
        split_value(serial, &|text| FilePart::Serial(text.to_owned()))
    });
    if !card.is_asleep() {
        recorder.copy(device, &AWAKE_FILES);
        let blocks = device.join("ras");
        let names = recorder.list_entries(&blocks).into_iter();
        for name in names.filter(|name| name.ends_with(ERROR_COUNT_SUFFIX)) {
            recorder.copy(&blocks, &[&name]);
        }
    }
}

/// Copies the files that do not belong to a single card: the driver version, the topology, and the
/// compute processes.
pub(crate) fn copy_driver_files(recorder: &Recorder<'_>) {
    recorder.copy(Path::new("module/amdgpu"), &["version"]);
    let topology = Path::new(TOPOLOGY_FOLDER);
    recorder.copy(topology, &["generation_id"]);
    for node in list_folders(recorder, &topology.join("nodes")) {
        recorder.copy(&node, &["gpu_id", "name"]);
        recorder.copy_file_parts(&node, &["properties"], split_properties);
        for bank in list_folders(recorder, &node.join("mem_banks")) {
            recorder.copy(&bank, &["properties", "used_memory"]);
        }
        for link in list_folders(recorder, &node.join("io_links")) {
            recorder.copy(&link, &["properties"]);
        }
    }
    for process in list_folders(recorder, Path::new(PROCESSES_FOLDER)) {
        recorder.copy(&process, &["vram_*"]);
        for queue in list_folders(recorder, &process.join("queues")) {
            recorder.copy(&queue, &["gpuid"]);
        }
        for name in recorder.list_entries(&process) {
            if name.starts_with("stats_") {
                recorder.copy(&process.join(name), &["cu_occupancy", "evicted_ms"]);
            }
        }
    }
}

fn list_folders(recorder: &Recorder<'_>, folder: &Path) -> Vec<PathBuf> {
    let names = recorder.list_entries(folder).into_iter();
    names.map(|name| folder.join(name)).collect()
}

fn make_id_part(text: &str) -> FilePart {
    FilePart::Id(text.to_ascii_lowercase())
}

/// Splits the content of a file with a single value. `identify` returns the part for the value. If
/// the file is empty or contains only zeros, there is no value.
fn split_value(content: &[u8], identify: &dyn Fn(&str) -> FilePart) -> Vec<FilePart> {
    let text = String::from_utf8_lossy(content);
    let value = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    if value.bytes().all(|letter| letter == b'0') {
        return vec![FilePart::Plain(content.to_vec())];
    }
    vec![identify(value), FilePart::Plain(b"\n".to_vec())]
}

/// Splits the properties of a topology node into parts. In these properties, IDs are decimal
/// numbers.
fn split_properties(content: &[u8]) -> Vec<FilePart> {
    let text = String::from_utf8_lossy(content);
    let mut parts = Vec::new();
    for line in text.lines() {
        let id = line
            .split_once(' ')
            .filter(|(name, _)| ID_PROPERTIES.contains(name));
        let id = id.and_then(|(name, id)| Some((name, id.trim().parse::<u64>().ok()?)));
        match id.filter(|(_, id)| *id != 0) {
            Some((name, id)) => parts.extend([
                FilePart::Plain(format!("{name} ").into_bytes()),
                FilePart::Id(format!("{id:016x}")),
                FilePart::Plain(b"\n".to_vec()),
            ]),
            None => parts.push(FilePart::Plain(format!("{line}\n").into_bytes())),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn make_card(root: &Path, files: &[(&str, &[u8])]) -> Card {
        let device = root.join("class/drm/card0/device");
        let event = b"DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n";
        for (name, content) in [("uevent", &event[..])].iter().chain(files) {
            let file = device.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        find_cards(root).remove(0)
    }

    #[test]
    fn unknown_table_and_missing_sensors_are_reported() {
        let root = tempfile::tempdir().unwrap();
        let mut table = vec![0; 500];
        table[..4].copy_from_slice(&[0xf4, 1, 1, 77]);
        let findings = check_card(&make_card(root.path(), &[("gpu_metrics", &table)]));
        let texts: Vec<_> = findings.iter().map(|own| own.text.as_str()).collect();
        assert!(
            texts[0].starts_with("0000:03:00.0 has no sensors"),
            "{texts:?}"
        );
        assert!(
            texts[1].contains("gpu_metrics v1.77 with 500 bytes is unknown"),
            "{texts:?}"
        );
        assert!(findings[1].cure.as_ref().unwrap().contains("--bundle"));
        let healthy = [
            ("gpu_metrics", &b""[..]),
            ("hwmon/hwmon3/name", b"amdgpu\n"),
        ];
        assert_eq!(check_card(&make_card(root.path(), &healthy)), []);
    }

    #[test]
    fn missing_kfd_topology_is_reported_only_with_cards() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(check_topology(root.path(), &[]), None);
        let cards = [make_card(root.path(), &[])];
        let finding = check_topology(root.path(), &cards).unwrap();
        assert!(finding.text.contains("cannot be read"), "{finding:?}");
        let node = root.path().join("class/kfd/kfd/topology/nodes/1");
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("gpu_id"), "4711\n").unwrap();
        assert_eq!(check_topology(root.path(), &cards), None);
    }
}

#[cfg(test)]
mod recording_tests {
    use super::*;

    fn make_plain_part(text: &str) -> FilePart {
        FilePart::Plain(text.as_bytes().to_vec())
    }

    #[test]
    fn card_id_is_recognized_in_every_number_format() {
        let id = FilePart::Id("a1b2c3d4e5f60718".to_owned());
        let whole = split_value(b"A1B2C3D4E5F60718\n", &make_id_part);
        assert_eq!(whole, [id.clone(), make_plain_part("\n")]);
        let number = 0xa1b2_c3d4_e5f6_0718_u64;
        let properties = format!("simd_count 416\nunique_id {number}\nhive_id 0\n");
        assert_eq!(
            split_properties(properties.as_bytes()),
            [
                make_plain_part("simd_count 416\n"),
                make_plain_part("unique_id "),
                id,
                make_plain_part("\n"),
                make_plain_part("hive_id 0\n")
            ]
        );
        for none in ["", "0000000000000000\n", "\0"] {
            assert_eq!(
                split_value(none.as_bytes(), &make_id_part),
                [make_plain_part(none)]
            );
        }
    }
}
