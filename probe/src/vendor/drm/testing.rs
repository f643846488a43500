//! Test helpers for AMD and Intel GPUs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fake_drm::Tree;

use crate::{
    model::{Absence, GpuDetails, GpuSample, Health},
    vendor::{Device, DeviceError, ReadDepth, Roots},
};

/// Returns the file system roots of a simulated machine.
pub(crate) fn make_roots(tree: &Tree) -> Roots {
    Roots {
        nvml_lib: None,
        sys: tree.sys(),
        proc: tree.proc(),
    }
}

/// Reads a full sample at time 1 ms.
pub(crate) fn read_sample(device: &mut dyn Device) -> Result<GpuSample, DeviceError> {
    let mut sample = GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::NoAnswer);
    device.read(&mut sample, ReadDepth::Full)?;
    Ok(sample)
}

pub(crate) fn read_details(device: &mut dyn Device) -> GpuDetails {
    let mut details = GpuDetails::new_absent(0, None, 1, &Absence::NoAnswer);
    device.read_details(&mut details).unwrap();
    details
}

/// Returns the name and folder of each recorded card of `vendor`. The recordings are not part of
/// the repository.
pub(crate) fn find_recorded_cards(vendor: &str) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/sysfs");
    let Ok(boards) = fs::read_dir(root.join(vendor)) else {
        return Vec::new();
    };
    let cards = boards.flatten().filter_map(|board| {
        let mut entries = fs::read_dir(board.path()).ok()?.flatten();
        let card = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("card"))?;
        let name = board.file_name().to_string_lossy().into_owned();
        Some((name, card.path().canonicalize().ok()?))
    });
    cards.collect()
}
