//! The `NVLink` connections of a GPU.

use nvml_wrapper_sys::bindings::{
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_GPU as GPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU as NPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH as SWITCH,
};

use super::super::{
    cached::{Answers, and_then, count},
    lanes,
};
use crate::{
    model::{Absence, NvLink, NvLinkRemote, Reading},
    vendor::nvml::query::{Code, Query as Q},
};

/// The driver's unit of data, which is KiB.
pub(in super::super) const DATA_UNIT_BYTES: f64 = 1024.0;

/// The driver's unit of speed, which is MB per second.
const SPEED_UNIT_BYTES: f64 = 1e6;

/// Returns all links. The list is empty if the GPU has none.
pub(super) fn nvlinks(answers: Answers<'_>) -> Reading<Vec<NvLink>> {
    if has_no_links(answers) {
        return Reading::Now(Vec::new());
    }
    match answers.number(Q::NvLinkState(0)) {
        // The driver lacks the function.
        Reading::Absent(Absence::NotSupported) => return Reading::Now(Vec::new()),
        Reading::Absent(reason) => return Reading::Absent(reason),
        _ => {}
    }
    let there = |link: &u32| answers.ageless().value(lanes::link_speed(*link)) != never_asked();
    Reading::Now(
        (0..lanes::MOST_LINKS)
            .take_while(there)
            .map(|link| nvlink(answers, link))
            .collect(),
    )
}

/// Returns `true` if the driver's answer about the first link means that the board has no links.
pub(in super::super) fn has_no_links(answers: Answers<'_>) -> bool {
    matches!(
        answers.refusal(Q::NvLinkState(0)),
        Some(Code::NOT_SUPPORTED | Code::DEPRECATED | Code::INVALID_ARGUMENT)
    )
}

fn never_asked<T>() -> Reading<T> {
    Reading::Absent(Absence::NoAnswer)
}

fn nvlink(answers: Answers<'_>, link: u32) -> NvLink {
    let steady = answers.ageless();
    let [tx, rx, errors @ ..] = lanes::link_counters(link);
    // The counters are read less often than the rest, so that each has its own time.
    let dated = |reading: Reading<u64>, query| match answers.read_at_ms(query) {
        Some(at_ms) => reading.dated(at_ms),
        None => reading,
    };
    let bytes = |query| {
        dated(
            and_then(steady.real(query), |data| count(data * DATA_UNIT_BYTES)),
            query,
        )
    };
    let [replays_total, recoveries_total, crc_errors_total] =
        errors.map(|query| dated(and_then(steady.real(query), count), query));
    NvLink {
        link,
        active: answers.flag(Q::NvLinkState(link)),
        version: steady.whole(Q::NvLinkVersion(link)).map(version),
        bytes_per_second: steady
            .real(lanes::link_speed(link))
            .map(|speed| speed * SPEED_UNIT_BYTES),
        remote: steady.whole(Q::NvLinkRemoteDeviceType(link)).map(remote),
        remote_pci_bus_id: and_then(steady.text(Q::NvLinkRemoteBusId(link)), known),
        tx_bytes_total: bytes(tx),
        rx_bytes_total: bytes(rx),
        errors_total: dated(sum(&errors.map(|query| steady.real(query))), tx),
        replays_total,
        recoveries_total,
        crc_errors_total,
    }
}

/// Returns the sum of the counters that the link has. If it has none, the sum is absent.
fn sum(counters: &[Reading<f64>]) -> Reading<u64> {
    let counted: Vec<_> = counters.iter().filter_map(Reading::value).collect();
    match (counted.is_empty(), counters.first()) {
        (true, Some(Reading::Absent(reason))) => Reading::Absent(reason.clone()),
        _ => count(counted.into_iter().sum::<f64>()),
    }
}

/// Converts NVML's version numbers, which count 1.0, 2.0, 2.2, 3.0, 3.1, 4.0 and 5.0.
fn version(version: u32) -> String {
    const VERSIONS: [&str; 7] = ["1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0"];
    let known = version
        .checked_sub(1)
        .and_then(|at| VERSIONS.get(at as usize));
    known.map_or_else(|| version.to_string(), ToString::to_string)
}

/// Converts a `nvmlIntNvLinkDeviceType_t` to the kind of remote device.
pub(in super::super) fn remote(kind: u32) -> NvLinkRemote {
    match kind {
        GPU => NvLinkRemote::Gpu,
        NPU => NvLinkRemote::Npu,
        SWITCH => NvLinkRemote::Switch,
        _ => NvLinkRemote::Unknown,
    }
}

/// Returns the bus ID, unless it is unknown. In virtual machines, the driver cannot see the other
/// end and reports a bus ID of all ones.
fn known(bus_id: String) -> Reading<String> {
    if bus_id.starts_with("FFFFFFF") {
        Reading::Absent(Absence::Unknown)
    } else {
        Reading::Now(bus_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_added_up_as_far_as_they_are_counted() {
        let none = || Reading::Absent(Absence::NotSupported);
        assert_eq!(
            sum(&[Reading::Now(3.0), none(), Reading::Now(4.0)]),
            Reading::Now(7)
        );
        assert_eq!(
            sum(&[none(), none()]),
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn a_bus_id_of_all_ones_is_unknown() {
        assert_eq!(
            known("FFFFFFFF:FF:FF.0".to_owned()),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            known("00000000:3B:00.0".to_owned()),
            Reading::Now("00000000:3B:00.0".to_owned())
        );
    }
}
