//! Conversion of the driver's answers about a GPU's `NVLink` connections.

use nvml_wrapper_sys::bindings::{
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_GPU as GPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU as NPU,
    nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH as SWITCH,
};

use super::{TimedAnswers, and_then, convert_count};
use crate::{
    model::{Absence, NvLink, NvLinkRemote, Reading},
    vendor::nvml::{
        query::{Code, Query as Q},
        schedule,
    },
};

/// The unit in which the driver counts data, 1 KiB.
pub(crate) const DATA_UNIT_BYTES: f64 = 1024.0;

/// The unit in which the driver reports speeds, 1 MB per second.
const SPEED_UNIT_BYTES: f64 = 1e6;

/// Returns all `NVLinks`. The list is empty if the GPU has no links.
pub(super) fn list_nvlinks(answers: TimedAnswers<'_>) -> Reading<Vec<NvLink>> {
    if has_no_links(answers) {
        return Reading::Now(Vec::new());
    }
    match answers.read_number(Q::NvLinkState(0)) {
        // If the driver does not support this query, the GPU has no links.
        Reading::Absent(Absence::NotSupported) => return Reading::Now(Vec::new()),
        Reading::Absent(reason) => return Reading::Absent(reason),
        _ => {}
    }
    let there = |link: &u32| {
        answers
            .ignoring_age()
            .get(schedule::link_speed_query(*link))
            != Reading::Absent(Absence::NoAnswer)
    };
    Reading::Now(
        (0..schedule::MAX_LINKS)
            .take_while(there)
            .map(|link| make_nvlink(answers, link))
            .collect(),
    )
}

/// Returns `true` if the driver's answer about the first link means that the board has no links.
pub(crate) fn has_no_links(answers: TimedAnswers<'_>) -> bool {
    matches!(
        answers.error_code(Q::NvLinkState(0)),
        Some(Code::NOT_SUPPORTED | Code::DEPRECATED | Code::INVALID_ARGUMENT)
    )
}

fn make_nvlink(answers: TimedAnswers<'_>, link: u32) -> NvLink {
    let steady = answers.ignoring_age();
    let [tx, rx, errors @ ..] = schedule::link_counter_queries(link);
    // The counters are read less often than other values, so each has its own time.
    let dated = |reading: Reading<u64>, query| match answers.read_at_ms(query) {
        Some(at_ms) => reading.with_time(at_ms),
        None => reading,
    };
    let bytes = |query| {
        dated(
            and_then(steady.read_float(query), |data| {
                convert_count(data * DATA_UNIT_BYTES)
            }),
            query,
        )
    };
    let [replays_total, recoveries_total, crc_errors_total] =
        errors.map(|query| dated(and_then(steady.read_float(query), convert_count), query));
    NvLink {
        link,
        active: answers.read_flag(Q::NvLinkState(link)),
        version: steady
            .read_integer(Q::NvLinkVersion(link))
            .map(format_version),
        bytes_per_second: steady
            .read_float(schedule::link_speed_query(link))
            .map(|speed| speed * SPEED_UNIT_BYTES),
        remote: steady
            .read_integer(Q::NvLinkRemoteDeviceType(link))
            .map(to_remote_kind),
        remote_pci_bus_id: and_then(
            steady.read_text(Q::NvLinkRemoteBusId(link)),
            reject_unknown_bus_id,
        ),
        tx_bytes_total: bytes(tx),
        rx_bytes_total: bytes(rx),
        errors_total: dated(
            sum_counters(&errors.map(|query| steady.read_float(query))),
            tx,
        ),
        replays_total,
        recoveries_total,
        crc_errors_total,
    }
}

/// Returns the sum of all counters that the link has. If the link has no counters, the sum is
/// absent.
fn sum_counters(counters: &[Reading<f64>]) -> Reading<u64> {
    let counted: Vec<_> = counters.iter().filter_map(Reading::value).collect();
    match (counted.is_empty(), counters.first()) {
        (true, Some(Reading::Absent(reason))) => Reading::Absent(reason.clone()),
        _ => convert_count(counted.into_iter().sum::<f64>()),
    }
}

/// Converts NVML's version number to text. NVML numbers the versions 1.0, 2.0, 2.2, 3.0, 3.1, 4.0
/// and 5.0 consecutively.
fn format_version(version: u32) -> String {
    const VERSIONS: [&str; 7] = ["1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0"];
    let known = version
        .checked_sub(1)
        .and_then(|at| VERSIONS.get(at as usize));
    known.map_or_else(|| version.to_string(), ToString::to_string)
}

/// Converts a `nvmlIntNvLinkDeviceType_t` to the kind of device at the link's other end.
pub(crate) fn to_remote_kind(kind: u32) -> NvLinkRemote {
    match kind {
        GPU => NvLinkRemote::Gpu,
        NPU => NvLinkRemote::Npu,
        SWITCH => NvLinkRemote::Switch,
        _ => NvLinkRemote::Unknown,
    }
}

/// Returns a reading of the bus ID, which is absent if the ID is a placeholder. In virtual
/// machines, the driver cannot see the link's other end and reports a bus ID of all ones.
fn reject_unknown_bus_id(bus_id: String) -> Reading<String> {
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
    fn available_link_error_counts_are_summed() {
        let none = || Reading::Absent(Absence::NotSupported);
        assert_eq!(
            sum_counters(&[Reading::Now(3.0), none(), Reading::Now(4.0)]),
            Reading::Now(7)
        );
        assert_eq!(
            sum_counters(&[none(), none()]),
            Reading::Absent(Absence::NotSupported)
        );
    }

    #[test]
    fn bus_id_of_all_ones_is_unknown() {
        assert_eq!(
            reject_unknown_bus_id("FFFFFFFF:FF:FF.0".to_owned()),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            reject_unknown_bus_id("00000000:3B:00.0".to_owned()),
            Reading::Now("00000000:3B:00.0".to_owned())
        );
    }
}
