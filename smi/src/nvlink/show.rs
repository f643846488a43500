//! The text that each switch of `nvlink` prints about a GPU's links.

use gpumon_probe::vendor::nvml::query::Query;

use super::{DEPRECATED_OPTIONS, REWORDED_SINCE, links::Links, power};
use crate::{Refusal, release::Release, switches::Switches};

/// The field ID `NVML_FI_DEV_NVLINK_GET_SPEED`, in MB/s. The constant below is
/// `NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID`.
const SPEED_FIELD: u32 = 164;
const REMOTE_LINK_FIELD: u32 = 146;

/// The field ID `NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY`, and the two IDs that follow.
const ERROR_FIELDS: [(u32, &str); 3] = [
    (161, "Replay Errors"),
    (162, "Recovery Errors"),
    (163, "CRC Errors"),
];

/// The field IDs `NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX` and `_RX`.
const DATA_FIELDS: [(u32, &str); 2] = [(138, "Data Tx"), (139, "Data Rx")];
const RAW_FIELDS: [(u32, &str); 2] = [(140, "Raw Tx"), (141, "Raw Rx")];

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
const INVALID_LINK: &str = "\t Invalid Link\n";

/// Returns the text for all given switches, in nvidia-smi's order.
pub(super) fn format_all(
    links: &Links<'_>,
    switches: &Switches<'_>,
    release: Release,
) -> Result<String, Refusal> {
    let mut text = String::new();
    let refuse =
        |shown: &str, code, words: &str| Err(Refusal::new(code, format!("{shown}{words}")));
    if switches.contains("-s") {
        text.push_str(&format_status(links, release));
    }
    if switches.contains("-c") {
        text.push_str(&format_each_link(links, format_capabilities));
    }
    if switches.contains("-p") {
        text.push_str(&format_each_link(links, |links, link| {
            format!("\t Link {link}: {}\n", format_remote(links, link))
        }));
    }
    if switches.contains("-R") {
        text.push_str(&format_each_link(links, |links, link| {
            let number = links
                .read_field(REMOTE_LINK_FIELD, link)
                .map_or_else(|| NOT_AVAILABLE.to_owned(), |id| id.to_string());
            format!(
                "\t Link {link}: Remote Device {}: Link {number}\n",
                format_remote(links, link)
            )
        }));
    }
    if let Some((_, words)) = DEPRECATED_OPTIONS
        .iter()
        .find(|(switch, _)| switches.contains(switch))
    {
        return refuse(&text, 3, words);
    }
    if switches.contains("-e") {
        text.push_str(&format_each_link(links, |links, link| {
            format_counters(links, link, &ERROR_FIELDS, "") + "\n"
        }));
    }
    match switches.value("-gt") {
        Some("d") => text.push_str(&format_each_link(links, |links, link| {
            format_counters(links, link, &DATA_FIELDS, " KiB")
        })),
        Some("r") => text.push_str(&format_each_link(links, |links, link| {
            format_counters(links, link, &RAW_FIELDS, " KiB")
        })),
        Some(_) => return refuse(&text, 2, "Failed to get throughput counters\n"),
        None => {}
    }
    if switches.contains("-gLowPwrInfo") {
        text.push_str(
            &power::format_low_power(links)
                .map_or_else(|| refuse(&text, 3, "Not supported\n"), Ok)?,
        );
    }
    if switches.contains("-gLWidth") {
        // Since Blackwell, links can have several widths, and NVML does not report the current
        // width.
        let architecture = links
            .read_value(Query::Architecture)
            .and_then(|answer| answer.number_at(0));
        if architecture.is_some_and(|architecture| architecture >= BLACKWELL) {
            return Err(Refusal::new_handed_over("nvlink -gLWidth"));
        }
        return refuse(&text, 3, "Not supported\n");
    }
    if switches.contains("-info") {
        text.push_str(&format_info(links));
    }
    Ok(text)
}

fn format_each_link(links: &Links<'_>, show: impl Fn(&Links<'_>, u32) -> String) -> String {
    let Some(chosen) = links.selected_links() else {
        return INVALID_LINK.to_owned();
    };
    chosen
        .iter()
        .filter(|link| links.is_active(**link))
        .map(|link| show(links, *link))
        .collect()
}

fn format_status(links: &Links<'_>, release: Release) -> String {
    let Some(chosen) = links.selected_links() else {
        return INVALID_LINK.to_owned();
    };
    if chosen.iter().all(|link| !links.is_active(*link)) {
        let name = if release < REWORDED_SINCE {
            "NVLink"
        } else {
            "Nvlink"
        };
        return format!("NVML: Unable to retrieve {name} information as all links are inActive\n");
    }
    let speed = |link| {
        if !links.is_active(link) {
            return "<inactive>".to_owned();
        }
        links.read_field(SPEED_FIELD, link).map_or_else(
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

fn format_capabilities(links: &Links<'_>, link: u32) -> String {
    let text = CAPABILITIES
        .iter()
        .zip(0..)
        .filter_map(|(words, capability)| {
            let has = links
                .read_value(Query::NvLinkCapability(link, capability))?
                .number_at(0)?
                != 0;
            Some(format!("\t Link {link}, {words}: {has}\n"))
        });
    text.collect()
}

fn format_remote(links: &Links<'_>, link: u32) -> String {
    let answer = links.read_value(Query::NvLinkRemoteBusId(link));
    answer
        .as_ref()
        .and_then(|answer| answer.text())
        .unwrap_or(NOT_AVAILABLE)
        .to_owned()
}

fn format_counters(links: &Links<'_>, link: u32, fields: &[(u32, &str)], unit: &str) -> String {
    let text = fields.iter().map(|(field, name)| {
        links.read_field(*field, link).map_or_else(
            || format!("\t Link {link}: {name}: {NOT_AVAILABLE}\n"),
            |count| format!("\t Link {link}: {name}: {count}{unit}\n"),
        )
    });
    text.collect()
}

/// Returns text about the links' encryption and firmware versions.
fn format_info(links: &Links<'_>) -> String {
    /// The names of the firmware components, starting with `NVML_NVLINK_FIRMWARE_UCODE_TYPE_MSE`.
    const FIRMWARE: [&str; 5] = ["MSE", "NETIR", "NETIR UPHY", "NETIR CLN", "NETIR DLN"];
    let answer = links.read_value(Query::NvLinkInfo);
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
