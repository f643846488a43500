//! Metrics with dcgm-exporter's names, labels and units, so that its dashboards and alerts can be
//! used.
//!
//! The field catalog contains the names, and `UNAVAILABLE_FIELDS` lists the names without a
//! reading. An Xid is reported while its condition lasts, even for a lost GPU. If the kubelet
//! reports which pods hold a device, the device's series have dcgm-exporter's labels for these
//! pods.

use gpumon_probe::model::{
    Allocation, GpuSample, MigSample,
    fields::{BOARD_METRICS, DETAIL_METRICS, Dcgm, GPU_FIELDS, Metric, SAMPLE_METRICS, Unit},
};

use super::{
    scrape::{GpuScrape, Scrape, reading_text},
    text::{Family, Labels, Page},
};

/// The labels of a GPU and of its MIG devices. The MIG devices are in the sample's order.
struct DeviceLabels {
    gpu: Labels,
    mig_devices: Vec<Labels>,
}

/// The version of dcgm-exporter whose names are used. DCGM has renamed fields and changed their
/// units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DcgmVersion {
    /// dcgm-exporter up to version 4.8.
    Old,
    /// dcgm-exporter since version 4.9, with the names of DCGM 4.7.
    Renamed,
}

/// The fields of dcgm-exporter that gpumon does not provide, with the reason.
#[cfg(test)]
pub(super) const UNAVAILABLE_FIELDS: &[(&str, &str)] = &[
    (
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        "licenses of virtual GPUs are not read",
    ),
    (
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, \
         DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "both are counted as one: `DCGM_FI_DEV_NVLINK_ERROR_DL_CRC`",
    ),
    (
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0 to L17",
        "`/metrics?links=true` has series for each link, under other names",
    ),
    (
        "DCGM_FI_DEV_ECC_SBE_VOL_L1 and others by location",
        "available as `gpumon_gpu_ecc_location_errors_total`",
    ),
    (
        "DCGM_FI_DEV_APP_SM_CLOCK",
        "only the application clock of the graphics engine is read",
    ),
    (
        "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION, DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION",
        "NVML does not report them",
    ),
    (
        "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL and others of DCGM 4.7",
        "the `…_VIOLATION` counters have the same values, also in `format=dcgm-4.9`",
    ),
    (
        "DCGM_FI_DEV_PCIE_TX_THROUGHPUT, DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
        "deprecated by NVIDIA: `DCGM_FI_PROF_PCIE_TX_BYTES` and `_RX_BYTES` have the same values",
    ),
    (
        "DCGM_EXP_XID_ERRORS_COUNT, DCGM_EXP_CLOCK_EVENTS_COUNT, DCGM_EXP_GPU_HEALTH_STATUS",
        "computed by dcgm-exporter or DCGM itself; `gpumon_gpu_xid_errors_total` and \
         `gpumon_condition` contain more",
    ),
];

pub(super) fn write_dcgm_metrics(page: &mut Page, scrape: &Scrape<'_>, version: DcgmVersion) {
    let gpus: Vec<_> = scrape
        .gpus
        .iter()
        .map(|reported| (reported, DeviceLabels::new(scrape, reported, version)))
        .collect();
    for field in GPU_FIELDS {
        let Some(dcgm) = field.dcgm else { continue };
        let mut family =
            page.start_family(version.metric_name(dcgm), field.kind.into(), field.help);
        let reported = |value: f64| version.convert_value(dcgm, field.unit, value);
        let of_gpu = |gpu: &GpuSample| field.access.value(gpu).map(reported);
        for (gpu, labels) in &gpus {
            match (gpu.readings, field.mig) {
                (Some(readings), Some(mig)) => {
                    add_instance_series(&mut family, readings, labels, of_gpu, |it| {
                        mig.value(it).map(reported)
                    });
                }
                (readings, _) => family.add_series(&labels.gpu, &[], readings.and_then(of_gpu)),
            }
        }
    }
    write_families(page, &gpus, version, SAMPLE_METRICS, |it, metric| {
        let sample = if metric.outlasts_gpu {
            it.sample
        } else {
            it.readings
        };
        (metric.read)(sample?)
    });
    write_families(page, &gpus, version, DETAIL_METRICS, |it, metric| {
        (metric.read)(it.details?)
    });
    write_families(page, &gpus, version, BOARD_METRICS, |it, metric| {
        (metric.read)(it.readings.map(|_| &it.gpu.board)?)
    });
}

fn write_families<S>(
    page: &mut Page,
    gpus: &[(&GpuScrape<'_>, DeviceLabels)],
    version: DcgmVersion,
    metrics: &[Metric<S>],
    read: impl Fn(&GpuScrape<'_>, &Metric<S>) -> Option<f64>,
) {
    for metric in metrics {
        let Some(dcgm) = metric.dcgm else { continue };
        let mut family =
            page.start_family(version.metric_name(dcgm), metric.kind.into(), metric.help);
        for (reported, labels) in gpus {
            family.add_series(
                &labels.gpu,
                &[],
                read(reported, metric).map(|value| version.convert_value(dcgm, metric.unit, value)),
            );
        }
    }
}

/// Adds a series for each MIG device. If there are none, adds one for the whole GPU. There is never
/// a series for both, so that sums are correct.
fn add_instance_series(
    family: &mut Family<'_>,
    gpu: &GpuSample,
    labels: &DeviceLabels,
    of_gpu: impl Fn(&GpuSample) -> Option<f64>,
    of_mig: impl Fn(&MigSample) -> Option<f64>,
) {
    let devices = gpu.mig_devices.value().map_or(&[][..], Vec::as_slice);
    if devices.is_empty() {
        family.add_series(&labels.gpu, &[], of_gpu(gpu));
    }
    for (mig, labels) in devices.iter().zip(&labels.mig_devices) {
        family.add_series(labels, &[], of_mig(mig));
    }
}

impl DcgmVersion {
    fn metric_name(self, dcgm: Dcgm) -> &'static str {
        match self {
            Self::Old => dcgm.name,
            Self::Renamed => dcgm.renamed,
        }
    }

    fn convert_value(self, dcgm: Dcgm, unit: Unit, value: f64) -> f64 {
        match self {
            Self::Old => dcgm.to_dcgm_unit(unit, value),
            Self::Renamed => dcgm.to_renamed_unit(unit, value),
        }
    }

    /// Returns the names of the labels for the hostname and the driver version.
    pub(super) fn label_names(self) -> [&'static str; 2] {
        match self {
            Self::Old => ["Hostname", "DCGM_FI_DRIVER_VERSION"],
            Self::Renamed => ["hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION"],
        }
    }
}

impl DeviceLabels {
    fn new(scrape: &Scrape<'_>, reported: &GpuScrape<'_>, version: DcgmVersion) -> Self {
        let gpu = gpu_labels(scrape, reported, version);
        let devices = reported
            .readings
            .and_then(|gpu| gpu.mig_devices.value())
            .map_or(&[][..], Vec::as_slice);
        let of_device = |mig: &MigSample| {
            let id = mig.instance.gpu_instance.to_string();
            let place = Labels::new([
                ("GPU_I_PROFILE", reported.find_profile(mig)),
                ("GPU_I_ID", &id),
            ]);
            gpu.join(&place)
                .join(&common_holder_labels(&mig.allocated_to))
        };
        let mig_devices = devices.iter().map(of_device).collect();
        let of_gpu = reported
            .sample
            .map_or(&[][..], |sample| &sample.allocated_to);
        Self {
            gpu: gpu.join(&common_holder_labels(of_gpu)),
            mig_devices,
        }
    }
}

/// Returns the labels that all holders of a device have in common. If several pods share a device,
/// its readings do not belong to any single pod.
fn common_holder_labels(allocated_to: &[Allocation]) -> Labels {
    let holders = allocated_to.iter().filter_map(|holder| match holder {
        Allocation::Kubernetes {
            namespace,
            pod,
            container,
        } => Some([pod, namespace, container].map(String::as_str)),
        Allocation::Slurm { .. } => None,
    });
    let common = holders.reduce(|all, one| {
        // Pods with the same name in different namespaces are different pods, and a container's
        // name only identifies it within its pod.
        let is_same_namespace = all[1] == one[1];
        let is_same_pod = is_same_namespace && all[0] == one[0];
        let is_same = [
            is_same_pod,
            is_same_namespace,
            is_same_pod && all[2] == one[2],
        ];
        [0, 1, 2].map(|at| if is_same[at] { all[at] } else { "" })
    });
    Labels::new(
        ["pod", "namespace", "container"]
            .into_iter()
            .zip(common.unwrap_or_default()),
    )
}

fn gpu_labels(scrape: &Scrape<'_>, reported: &GpuScrape<'_>, version: DcgmVersion) -> Labels {
    let inventory = scrape.known.inventory.as_ref();
    let [hostname, driver] = version.label_names();
    // The label is the name of the GPU's device file.
    let device = format!(
        "nvidia{}",
        reported
            .gpu
            .board
            .minor_number
            .value()
            .unwrap_or(&reported.gpu.index)
    );
    Labels::new([
        ("gpu", reported.gpu.index.to_string().as_str()),
        ("UUID", reported.gpu.uuid.as_deref().unwrap_or_default()),
        ("pci_bus_id", reading_text(&reported.gpu.pci_bus_id)),
        ("device", &device),
        ("modelName", reading_text(&reported.gpu.name)),
        (
            hostname,
            inventory.map_or("", |inventory| inventory.hostname.as_str()),
        ),
        (
            driver,
            inventory
                .and_then(|inventory| inventory.platform.find_driver(reported.gpu.vendor))
                .map_or("", |driver| reading_text(&driver.version)),
        ),
    ])
}
