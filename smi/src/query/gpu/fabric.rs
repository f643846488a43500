//! Fields for the GPU's state and health in the NVLink fabric.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, number_at};
use super::super::field::{Section, fields, row_field};
use super::super::row::Row;
use crate::release;

// The values of `nvmlGpuFabricState_t`.
const NOT_STARTED: i128 = 1;
const IN_PROGRESS: i128 = 2;
const COMPLETED: i128 = 3;

/// The words for a two-bit condition, `NVML_GPU_FABRIC_HEALTH_MASK_*`: 1 is true, 2 is false, and
/// 0, which has no word, is unknown.
const HOLDS: [&str; 2] = ["True", "False"];

/// The words for `NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*`, from value 1 on.
const CONFIGURATIONS: [&str; 8] = [
    "None",
    "Incorrect SystemGuid",
    "Incorrect Chassis Serial Number",
    "No Partition",
    "Insufficient Nvlink Resources",
    "Incompatible GPU Firmware",
    "Invalid Location",
    "GPU State Invalid",
];

pub(super) const SECTIONS: &[Section] = &[fields(&[
    row_field(
        "fabric.state",
        state,
        "How far the GPU has come in joining the fabric.",
    ),
    row_field(
        "fabric.status",
        status,
        "Whether joining it went well; only told once it is Completed.",
    ),
    row_field(
        "fabric.cliqueId",
        |row| Ok(joined_number(row, 2)?.to_string()),
        "The number of the clique to which the GPU belongs, within which NVLink reaches.",
    ),
    row_field(
        "fabric.clusterUuid",
        cluster_uuid,
        "The UUID of the cluster to which the GPU belongs.",
    ),
    row_field(
        "fabric.health.summary",
        health_summary,
        "How well the GPU is in the fabric, in one word.",
    ),
    row_field(
        "fabric.health.bandwidth",
        |row| health_word(row, 0, 0x3, &["Degraded", "Full"]),
        "Whether the GPU has all of its bandwidth there.",
    ),
    row_field(
        "fabric.health.route_recovery_in_progress",
        |row| health_word(row, 2, 0x3, &HOLDS),
        "Whether a route is being restored.",
    ),
    row_field(
        "fabric.health.route_unhealthy",
        |row| health_word(row, 4, 0x3, &HOLDS),
        "Whether restoring a route has failed.",
    ),
    row_field(
        "fabric.health.access_timeout_recovery",
        |row| health_word(row, 6, 0x3, &HOLDS),
        "Whether it recovers from an access that took too long.",
    ),
    row_field(
        "fabric.health.incorrect_configuration",
        |row| health_word(row, 8, 0xF, &CONFIGURATIONS),
        "What is wrong with the fabric's configuration.",
    ),
    row_field(
        "fabric.health.partition_assigned",
        |row| health_word(row, 12, 0x3, &HOLDS),
        "Whether the GPU has its partition of the fabric.",
    )
    .except(release::BRANCH_590),
])];

/// The word for a missing fabric reading, which has no brackets. The same word is used if the GPU
/// has no fabric and if the GPU has not joined the fabric yet.
fn no_reading() -> Absent {
    Absent::word("N/A")
}

/// Returns one of the numbers of [`Q::FabricInfo`].
fn fabric_number(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match row.ask(Q::FabricInfo) {
        Err(Code::NOT_SUPPORTED) => Err(no_reading()),
        answer => number_at(&answer, place),
    }
}

fn state(row: &Row<'_>) -> Cell {
    match fabric_number(row, 0)? {
        NOT_STARTED => Ok("Not Started".to_owned()),
        IN_PROGRESS => Ok("In Progress".to_owned()),
        COMPLETED => Ok("Completed".to_owned()),
        _ => Err(no_reading()),
    }
}

/// Returns the `nvmlReturn_t` with which joining the fabric ended.
fn join_outcome(row: &Row<'_>) -> Result<i128, Absent> {
    if fabric_number(row, 0)? == COMPLETED {
        fabric_number(row, 1)
    } else {
        Err(no_reading())
    }
}

fn status(row: &Row<'_>) -> Cell {
    Ok(match join_outcome(row)? {
        0 => "Success",
        3 => "Not Supported",
        4 => "Insufficient Permissions",
        6 => "Not Found",
        7 => "Insufficient Size",
        10 => "Timeout",
        15 => "GPU is lost",
        16 => "GPU requires reset",
        19 => "In use by another client",
        20 => "Insufficient Memory",
        23 => "Insufficient Resources",
        _ => "Unknown Error",
    }
    .to_owned())
}

/// Returns a number that is only available after the GPU has joined the fabric.
fn joined_number(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    if join_outcome(row)? == 0 {
        fabric_number(row, place)
    } else {
        Err(no_reading())
    }
}

fn cluster_uuid(row: &Row<'_>) -> Cell {
    let half = |place| joined_number(row, place).map(|number| number as u64);
    let digits = format!("{:016x}{:016x}", half(5)?, half(6)?);
    Ok([
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-"))
}

/// Returns the word for `nvmlGpuFabricHealthSummary`. If it is 0 (unknown), all conditions are
/// unknown, too.
fn health_summary(row: &Row<'_>) -> Cell {
    named(
        fabric_number(row, 4)?,
        &["Healthy", "Unhealthy", "Limited Capacity"],
    )
}

fn health_word(row: &Row<'_>, shift: u32, width: i128, words: &[&str]) -> Cell {
    health_summary(row)?;
    named((fabric_number(row, 3)? >> shift) & width, words)
}

/// Returns the word for a number, where the first word is for 1.
fn named(number: i128, words: &[&str]) -> Cell {
    let place = usize::try_from(number - 1).map_err(|_| no_reading())?;
    words
        .get(place)
        .map(|word| (*word).to_owned())
        .ok_or_else(no_reading)
}
