//! Memory and engine errors, which the driver counts for each hardware block (RAS).

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

use crate::{
    model::{Absence, Absent, Ecc, EccCounts, Reading},
    vendor::drm::Attributes,
};

/// The interval at which the error counters are read. Each read makes the driver collect the counts
/// from the hardware.
const READ_INTERVAL: Duration = Duration::from_mins(1);

/// The suffix of the files that contain a block's error counts.
const FILE_SUFFIX: &str = "_err_count";

/// The error counters of a GPU's hardware blocks.
#[derive(Debug, Default)]
pub(super) struct RasCounters {
    read_at: Option<Instant>,
    /// The last known numbers of corrected and uncorrected errors in each block. If a block cannot
    /// be read, its last counts are kept, so that the totals never decrease.
    blocks: BTreeMap<String, (u64, u64)>,
}

impl RasCounters {
    /// Returns the error counts of all blocks in a PCI device. The counters are read at most once a
    /// minute.
    pub(super) fn read(&mut self, device: &Attributes) -> Ecc {
        if self.read_at.is_none_or(|at| at.elapsed() >= READ_INTERVAL) {
            self.read_at = Some(Instant::now());
            for block in list_blocks(device) {
                let text = device.read_text(&format!("ras/{block}{FILE_SUFFIX}"));
                if let Some(counts) = text.ok().and_then(|text| parse_counts(&text)) {
                    self.blocks.insert(block, counts);
                }
            }
        }
        let mut ecc = Ecc::new_absent(&Absence::NotSupported);
        let sums =
            self.blocks.values().copied().reduce(|one, other| {
                (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
            });
        if let Some((corrected, uncorrected)) = sums {
            ecc.volatile = EccCounts {
                corrected_total: Reading::Now(corrected),
                uncorrected_total: Reading::Now(uncorrected),
            };
        }
        ecc
    }
}

fn list_blocks(device: &Attributes) -> Vec<String> {
    let Ok(entries) = fs::read_dir(device.folder().join("ras")) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| Some(name.to_str()?.strip_suffix(FILE_SUFFIX)?.to_owned()))
        .collect()
}

/// Parses lines such as `ue: 0` and `ce: 3`, and returns the numbers of corrected and uncorrected
/// errors.
fn parse_counts(text: &str) -> Option<(u64, u64)> {
    let count = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.trim().strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    Some((count("ce:")?, count("ue:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_all_blocks_are_summed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            fs::create_dir_all(folder.path().join("ras")).unwrap();
            fs::write(folder.path().join("ras").join(name), content).unwrap();
        };
        let device = Attributes::new(folder.path());
        let mut counters = RasCounters::default();
        assert_eq!(
            counters.read(&device),
            Ecc::new_absent(&Absence::NotSupported)
        );
        write("umc_err_count", "ue: 1\nce: 3\nde: 9\n");
        write("vcn_err_count", "ue: 0\nce: 2\n");
        write("mca_err_count", "ue: 4\nce: 0\n");
        write("jpeg_err_count", "Query currently inaccessible\n");
        write("features", "feature mask: 0x2f\n");
        let read = |counters: &mut RasCounters| {
            counters.read_at = None;
            let counts = counters.read(&device).volatile;
            [counts.corrected_total, counts.uncorrected_total]
        };
        assert_eq!(read(&mut counters), [5, 5].map(Reading::Now));
        write("umc_err_count", "Query currently inaccessible\n");
        write("vcn_err_count", "ue: 0\nce: 3\n");
        assert_eq!(
            read(&mut counters),
            [6, 5].map(Reading::Now),
            "sums never fall"
        );
    }
}
