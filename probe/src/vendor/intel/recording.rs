//! Copying of the Intel drivers' files, for bug reports.

use crate::vendor::drm::{Card, PowerState, Recorder};

/// The folders and files of an engine with the `xe` driver. They can be read only while the card is
/// awake.
const XE_FILES: [(&str, &[&str]); 3] = [
    (
        "freq0",
        &[
            "act_freq", "cur_freq", "rp0_freq", "rpn_freq", "min_freq", "max_freq",
        ],
    ),
    ("freq0/throttle", &["status", "reasons", "reason_*"]),
    ("gtidle", &["name", "idle_status", "idle_residency_ms"]),
];

/// The files of an engine with the `i915` driver. They can be read only while the card is awake.
const I915_FILES: [&str; 3] = ["rps_*", "rc6_*", "throttle_reason_*"];

pub(in crate::vendor) fn record_card(recorder: &Recorder<'_>, card: &Card) {
    let folders = recorder.copy_card(card);
    if card.power_state() != PowerState::Active {
        return;
    }
    recorder.copy(&folders.card.join("gt/gt0"), &I915_FILES);
    let engine = folders.device.join("tile0/gt0");
    for (folder, names) in XE_FILES {
        recorder.copy(&engine.join(folder), names);
    }
}
