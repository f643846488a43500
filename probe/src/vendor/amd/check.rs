//! Checks of AMD's drivers for `gpumon doctor`.

use std::path::Path;

use super::{
    kfd,
    metrics::{Metrics, MetricsError},
    source::DRIVER_NAME,
};
use crate::{
    model::{Severity, Vendor},
    vendor::{
        DriverFinding,
        drm::{self, Binding, Card, check_sensors},
        log_advice,
    },
};

/// The kernel drivers for AMD's GPUs. PCI class 0x12 is for Instinct GPUs, which are accelerators
/// without a display.
pub(in crate::vendor) static BINDING: Binding = Binding {
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

/// Returns the cards of AMD's driver. Each card's minor numbers include those of its partitions.
pub(in crate::vendor) fn find_cards(sys_root: &Path) -> Vec<Card> {
    let mut cards = drm::find_cards(sys_root, &[DRIVER_NAME]);
    let nodes = kfd::find_nodes(&kfd::find_root(sys_root));
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
pub(in crate::vendor) fn check_card(card: &Card) -> Vec<DriverFinding> {
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
pub(in crate::vendor) fn check_topology(sys_root: &Path, cards: &[Card]) -> Option<DriverFinding> {
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
    fn missing_topology_matters_only_with_cards() {
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
