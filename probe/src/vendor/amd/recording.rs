//! Copying of the AMD drivers' files, for bug reports.

use std::path::{Path, PathBuf};

use crate::vendor::{
    FilePart,
    drm::{Card, PowerState, Recorder},
};

/// Files that can be read without waking the card.
const PASSIVE_FILES: [&str; 4] = [
    "product_name",
    "product_number",
    "vbios_version",
    "mem_info_*",
];

/// Files that can be read only while the card is awake. The list omits `pcie_bw`, which takes a
/// second to read, and `xgmi_error`, because reading clears its counter.
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

/// The suffix of files that contain a block's error counts.
const ERROR_SUFFIX: &str = "_err_count";

const TOPOLOGY: &str = "class/kfd/kfd/topology";
const PROCESSES: &str = "class/kfd/kfd/proc";

/// The properties of a topology node that identify a GPU or a group of linked GPUs.
const ID_PROPERTIES: [&str; 2] = ["unique_id", "hive_id"];

pub(in crate::vendor) fn record_card(recorder: &Recorder<'_>, card: &Card) {
    let device = &recorder.copy_card(card).device;
    recorder.copy(device, &PASSIVE_FILES);
    recorder.copy_file_parts(device, &["unique_id"], |id| split_value(id, &make_id_part));
    recorder.copy_file_parts(device, &["serial_number"], |serial| {
        split_value(serial, &|text| FilePart::Serial(text.to_owned()))
    });
    if card.power_state() == PowerState::Active {
        recorder.copy(device, &AWAKE_FILES);
        let blocks = device.join("ras");
        let names = recorder.list(&blocks).into_iter();
        for name in names.filter(|name| name.ends_with(ERROR_SUFFIX)) {
            recorder.copy(&blocks, &[&name]);
        }
    }
}

/// Copies the files that do not belong to a single card: the driver version, the topology, and the
/// compute processes.
pub(in crate::vendor) fn record_driver(recorder: &Recorder<'_>) {
    recorder.copy(Path::new("module/amdgpu"), &["version"]);
    let topology = Path::new(TOPOLOGY);
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
    for process in list_folders(recorder, Path::new(PROCESSES)) {
        recorder.copy(&process, &["vram_*"]);
        for queue in list_folders(recorder, &process.join("queues")) {
            recorder.copy(&queue, &["gpuid"]);
        }
        for name in recorder.list(&process) {
            if name.starts_with("stats_") {
                recorder.copy(&process.join(name), &["cu_occupancy", "evicted_ms"]);
            }
        }
    }
}

fn list_folders(recorder: &Recorder<'_>, folder: &Path) -> Vec<PathBuf> {
    let names = recorder.list(folder).into_iter();
    names.map(|name| folder.join(name)).collect()
}

fn make_id_part(text: &str) -> FilePart {
    FilePart::Id(text.to_ascii_lowercase())
}

/// Splits the content of a file that contains one value. An empty file or a value of zeros means
/// that there is no value.
fn split_value(content: &[u8], identify: &dyn Fn(&str) -> FilePart) -> Vec<FilePart> {
    let text = String::from_utf8_lossy(content);
    let value = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    if value.bytes().all(|letter| letter == b'0') {
        return vec![FilePart::Plain(content.to_vec())];
    }
    vec![identify(value), FilePart::Plain(b"\n".to_vec())]
}

/// Splits a topology node's properties, in which IDs are decimal numbers.
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
    use super::*;

    fn make_plain_part(text: &str) -> FilePart {
        FilePart::Plain(text.as_bytes().to_vec())
    }

    #[test]
    fn ids_in_all_formats_become_equal_parts() {
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
