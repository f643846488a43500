//! The texts that the switches of `nvlink` print about a GPU's links.

use gpumon_probe::vendor::nvml::query::Query;

use super::{DEPRECATED, REWORDED, links::Links, power};
use crate::{Refusal, release::Release, switches::Switches};

/// The field IDs `NVML_FI_DEV_NVLINK_GET_SPEED` (in MB/s) and
/// `NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID`.
const SPEED: u32 = 164;
const REMOTE_LINK: u32 = 146;

/// `NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY` and the two field IDs after it.
const ERRORS: [(u32, &str); 3] = [
    (161, "Replay Errors"),
    (162, "Recovery Errors"),
    (163, "CRC Errors"),
];

/// The field IDs `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX` and `_RX`.
const DATA: [(u32, &str); 2] = [(138, "Data Tx"), (139, "Data Rx")];
const RAW: [(u32, &str); 2] = [(140, "Raw Tx"), (141, "Raw Rx")];

/// The names of the capabilities, in the order of `nvmlNvLinkCapability_t`.
const CAPABILITIES: [&str; 6] = [
    "P2P is supported",
    "Access to system memory supported",
    "P2P atomics supported",
    "System memory atomics supported",
    "SLI is supported",
    "Link is supported",
];

/// The value of `NVML_DEVICE_ARCH_BLACKWELL`.
const BLACKWELL: i128 = 10;

const NOT_AVAILABLE: &str = "N/A";
const INVALID: &str = "\t Invalid Link\n";

/// Returns the texts of all given switches, in nvidia-smi's order.
pub(super) fn all(
    links: &Links<'_>,
    switches: &Switches<'_>,
    release: Release,
) -> Result<String, Refusal> {
    let mut text = String::new();
    let refuse =
        |shown: &str, code, words: &str| Err(Refusal::new(code, format!("{shown}{words}")));
    if switches.has("-s") {
        text.push_str(&status(links, release));
    }
    if switches.has("-c") {
        text.push_str(&each(links, capabilities));
    }
    if switches.has("-p") {
        text.push_str(&each(links, |links, link| {
            format!("\t Link {link}: {}\n", remote(links, link))
        }));
    }
    if switches.has("-R") {
        text.push_str(&each(links, |links, link| {
            let number = links
                .field(REMOTE_LINK, link)
                .map_or_else(|| NOT_AVAILABLE.to_owned(), |id| id.to_string());
            format!(
                "\t Link {link}: Remote Device {}: Link {number}\n",
                remote(links, link)
            )
        }));
    }
    if let Some((_, words)) = DEPRECATED.iter().find(|(switch, _)| switches.has(switch)) {
        return refuse(&text, 3, words);
    }
    if switches.has("-e") {
        text.push_str(&each(links, |links, link| {
            counters(links, link, &ERRORS, "") + "\n"
        }));
    }
    match switches.value("-gt") {
        Some("d") => text.push_str(&each(links, |links, link| {
            counters(links, link, &DATA, " KiB")
        })),
        Some("r") => text.push_str(&each(links, |links, link| {
            counters(links, link, &RAW, " KiB")
        })),
        Some(_) => return refuse(&text, 2, "Failed to get throughput counters\n"),
        None => {}
    }
    if switches.has("-gLowPwrInfo") {
        text.push_str(
            &power::low_power(links).map_or_else(|| refuse(&text, 3, "Not supported\n"), Ok)?,
        );
    }
    if switches.has("-gLWidth") {
        // From Blackwell on, links can have several widths, and NVML does not report which one is
        // set.
        let architecture = links
            .ask(Query::Architecture)
            .and_then(|answer| answer.at(0));
        if architecture.is_some_and(|architecture| architecture >= BLACKWELL) {
            return Err(Refusal::handed_over("nvlink -gLWidth"));
        }
        return refuse(&text, 3, "Not supported\n");
    }
    if switches.has("-info") {
        text.push_str(&info(links));
    }
    Ok(text)
}

fn each(links: &Links<'_>, show: impl Fn(&Links<'_>, u32) -> String) -> String {
    let Some(chosen) = links.chosen() else {
        return INVALID.to_owned();
    };
    chosen
        .iter()
        .filter(|link| links.active(**link))
        .map(|link| show(links, *link))
        .collect()
}

fn status(links: &Links<'_>, release: Release) -> String {
    let Some(chosen) = links.chosen() else {
        return INVALID.to_owned();
    };
    if chosen.iter().all(|link| !links.active(*link)) {
        let name = if release < REWORDED {
            "NVLink"
        } else {
            "Nvlink"
        };
        return format!("NVML: Unable to retrieve {name} information as all links are inActive\n");
    }
    let speed = |link| {
        if !links.active(link) {
            return "<inactive>".to_owned();
        }
        links.field(SPEED, link).map_or_else(
            || NOT_AVAILABLE.to_owned(),
            |mb_per_s| format!("{}.{:03} GB/s", mb_per_s / 1000, mb_per_s % 1000),
        )
    };
    chosen
        .iter()
        .map(|link| format!("\t Link {link}: {}\n", speed(*link)))
        .collect::<Vec<_>>()
        .concat()
}

fn capabilities(links: &Links<'_>, link: u32) -> String {
    let text = CAPABILITIES
        .iter()
        .zip(0..)
        .filter_map(|(words, capability)| {
            let has = links
                .ask(Query::NvLinkCapability(link, capability))?
                .at(0)?
                != 0;
            Some(format!("\t Link {link}, {words}: {has}\n"))
        });
    text.collect()
}

fn remote(links: &Links<'_>, link: u32) -> String {
    let answer = links.ask(Query::NvLinkRemoteBusId(link));
    answer
        .as_ref()
        .and_then(|answer| answer.text())
        .unwrap_or(NOT_AVAILABLE)
        .to_owned()
}

fn counters(links: &Links<'_>, link: u32, fields: &[(u32, &str)], unit: &str) -> String {
    let text = fields.iter().map(|(field, name)| {
        links.field(*field, link).map_or_else(
            || format!("\t Link {link}: {name}: {NOT_AVAILABLE}\n"),
            |count| format!("\t Link {link}: {name}: {count}{unit}\n"),
        )
    });
    text.collect()
}

/// Returns whether links are encrypted, and the firmware versions of the links.
fn info(links: &Links<'_>) -> String {
    /// The firmware components, from `NVML_NVLINK_FIRMWARE_UCODE_TYPE_MSE` on.
    const FIRMWARE: [&str; 5] = ["MSE", "NETIR", "NETIR UPHY", "NETIR CLN", "NETIR DLN"];
    let answer = links.ask(Query::NvLinkInfo);
    let numbers = answer.as_ref().map_or(&[][..], |answer| answer.numbers());
    let encrypted = match numbers.first() {
        Some(0) => "disabled",
        Some(_) => "enabled",
        None => NOT_AVAILABLE,
    };
    let versions: String = numbers
        .get(1..)
        .unwrap_or_default()
        .as_chunks()
        .0
        .iter()
        .filter_map(|[part, major, minor, patch]| {
            let name = FIRMWARE.get(usize::try_from(*part).ok()?.checked_sub(1)?)?;
            Some(format!("\t     {name}: {major}:{minor}:{patch}\n"))
        })
        .collect();
    let versions = if versions.is_empty() {
        format!(" {NOT_AVAILABLE}\n")
    } else {
        format!("\n{versions}")
    };
    format!("\t NVLE: {encrypted}\n\t Firmware Version:{versions}")
}
