//! Each `NVLink` of a GPU.
//!
//! The counters of 18 links cost 32 ms, so that they are read less often than whether the links are up; what is at a
//! link's other end is asked once.

use std::time::Duration;

use nvml_wrapper::{Device, error::NvmlError};
use nvml_wrapper_sys::bindings::{
    NVML_NVLINK_MAX_LINKS,
    field_id::{
        NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
        NVML_FI_DEV_NVLINK_GET_SPEED, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
    },
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_GPU as GPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU as NPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH as SWITCH, nvmlIntNvLinkDeviceType_t,
};

use super::{ask::Asker, error::absence, paced::Every, raw};
use crate::model::{Absence, NvLink, NvLinkRemote, Reading, now_ms};

/// No GPU has more links.
pub(super) const MOST: u32 = NVML_NVLINK_MAX_LINKS;

/// How often the counters are read.
const COUNTERS_EVERY: Duration = Duration::from_mins(1);

/// The driver's unit of data: KiB.
pub(super) const DATA_UNIT_BYTES: f64 = 1024.0;

/// The driver's unit of speed: MB per second.
const SPEED_UNIT_BYTES: f64 = 1e6;

/// Remembers what is read seldom.
pub(super) struct LinkReader {
    counters: Every,
    known: Vec<NvLink>,
}

impl LinkReader {
    pub(super) fn new() -> Self {
        Self { counters: Every::new(COUNTERS_EVERY), known: Vec::new() }
    }

    /// Every link; an empty list where the GPU has none.
    pub(super) fn read(&mut self, device: &Device<'_>, asker: &mut Asker) -> Reading<Vec<NvLink>> {
        if let Reading::Absent(reason) = asker.ask("NVLink", || first_link(device)) {
            return match reason {
                Absence::NotSupported => Reading::Now(Vec::new()),
                reason => Reading::Absent(reason),
            };
        }
        if self.known.is_empty() {
            self.known = discover(device);
        }
        for link in &mut self.known {
            link.active = Reading::from(is_active(device, link.link).map_err(|error| absence(&error)));
        }
        if self.counters.is_due() {
            count(device, &mut self.known);
        }
        Reading::Now(self.known.clone())
    }
}

fn is_active(device: &Device<'_>, link: u32) -> Result<bool, NvmlError> {
    device.link_wrapper_for(link).is_active()
}

/// A board without links answers so for the first.
fn first_link(device: &Device<'_>) -> Result<(), NvmlError> {
    is_active(device, 0).map(drop).map_err(|error| match error {
        NvmlError::InvalidArg => NvmlError::NotSupported,
        error => error,
    })
}

/// What does not change: which links there are, how fast they are, what is at their other ends.
fn discover(device: &Device<'_>) -> Vec<NvLink> {
    let links: Vec<u32> = (0..MOST).take_while(|link| is_active(device, *link).is_ok()).collect();
    let speeds = fields(device, &links, &[NVML_FI_DEV_NVLINK_GET_SPEED]);
    links
        .into_iter()
        .zip(speeds)
        .map(|(link, speed)| {
            let wrapper = device.link_wrapper_for(link);
            let reading = |result: Result<String, NvmlError>| Reading::from(result.map_err(|error| absence(&error)));
            NvLink {
                link,
                active: Reading::Absent(Absence::NoAnswer),
                version: reading(wrapper.version().map(version)),
                bytes_per_second: speed.map(|speed| speed * SPEED_UNIT_BYTES),
                remote: Reading::from(raw::nvlink_remote(device, link).map(remote).map_err(|error| absence(&error))),
                remote_pci_bus_id: known(reading(wrapper.remote_pci_info().map(|pci| pci.bus_id))),
                tx_bytes_total: Reading::Absent(Absence::NoAnswer),
                rx_bytes_total: Reading::Absent(Absence::NoAnswer),
                errors_total: Reading::Absent(Absence::NoAnswer),
            }
        })
        .collect()
}

/// The counters of all links, each with its time, since they stay until they are read again.
fn count(device: &Device<'_>, links: &mut [NvLink]) {
    const COUNTERS: [u32; 5] = [
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
        NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
        NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
        NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
        NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    ];
    let numbers: Vec<u32> = links.iter().map(|link| link.link).collect();
    let values = fields(device, &numbers, &COUNTERS);
    let at_ms = now_ms();
    for (link, values) in links.iter_mut().zip(values.chunks_exact(COUNTERS.len())) {
        let [tx, rx, errors @ ..] = values else { continue };
        let bytes = |data: &Reading<f64>| data.clone().map(|data| (data * DATA_UNIT_BYTES) as u64).dated(at_ms);
        link.tx_bytes_total = bytes(tx);
        link.rx_bytes_total = bytes(rx);
        link.errors_total = sum(errors).dated(at_ms);
    }
}

/// Kinds of errors that a link does not count are left out of the sum; where it counts none, there is none.
fn sum(counters: &[Reading<f64>]) -> Reading<u64> {
    let counted: Vec<_> = counters.iter().filter_map(Reading::value).collect();
    match (counted.is_empty(), counters.first()) {
        (true, Some(Reading::Absent(reason))) => Reading::Absent(reason.clone()),
        _ => Reading::Now(counted.into_iter().sum::<f64>() as u64),
    }
}

/// These fields of every link, the fields of one link next to each other.
fn fields(device: &Device<'_>, links: &[u32], ids: &[u32]) -> Vec<Reading<f64>> {
    let asked: Vec<_> =
        links.iter().flat_map(|scope| ids.iter().map(|id| raw::Field { id: *id, scope: *scope })).collect();
    match raw::field_values(device, &asked) {
        Ok(values) => values.into_iter().map(|value| Reading::from(value.map_err(|error| absence(&error)))).collect(),
        Err(error) => vec![Reading::Absent(absence(&error)); asked.len()],
    }
}

/// NVML counts versions: 1, 2, then 2.2, 3, 3.1, 4, 5.
fn version(version: u32) -> String {
    match version {
        1 => "1.0",
        2 => "2.0",
        3 => "2.2",
        4 => "3.0",
        5 => "3.1",
        6 => "4.0",
        7 => "5.0",
        other => return other.to_string(),
    }
    .to_owned()
}

pub(super) fn remote(kind: nvmlIntNvLinkDeviceType_t) -> NvLinkRemote {
    match kind {
        GPU => NvLinkRemote::Gpu,
        NPU => NvLinkRemote::Npu,
        SWITCH => NvLinkRemote::Switch,
        _ => NvLinkRemote::Unknown,
    }
}

/// In a virtual machine the driver does not see what is there, and says so with a bus id of all ones.
fn known(bus_id: Reading<String>) -> Reading<String> {
    match bus_id {
        Reading::Now(bus_id) if bus_id.starts_with("FFFFFFF") => Reading::Absent(Absence::Unknown),
        reading => reading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_added_up_as_far_as_they_are_counted() {
        let none = || Reading::Absent(Absence::NotSupported);
        assert_eq!(sum(&[Reading::Now(3.0), none(), Reading::Now(4.0)]), Reading::Now(7));
        assert_eq!(sum(&[none(), none()]), Reading::Absent(Absence::NotSupported));
    }

    #[test]
    fn a_bus_id_of_all_ones_is_unknown() {
        let known = |bus_id: &str| known(Reading::Now(bus_id.to_owned()));
        assert_eq!(known("FFFFFFFF:FF:FF.0"), Reading::Absent(Absence::Unknown));
        assert_eq!(known("00000000:3B:00.0"), Reading::Now("00000000:3B:00.0".to_owned()));
    }
}
