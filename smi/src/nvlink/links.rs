//! A GPU's NVLinks, and the text that each switch of `nvlink` prints about them.

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject, Value};

use super::{DEPRECATED_OPTIONS, REWORDED_SINCE};
use crate::{Refusal, release::Release, subcommand::Switches};

/// The ID of the field `NVML_FI_DEV_NVLINK_LINK_COUNT`. `LINK_STATE_FIELD` is the ID of
/// `NVML_FI_DEV_NVLINK_GET_STATE`.
const LINK_COUNT_FIELD: u32 = 91;
const LINK_STATE_FIELD: u32 = 165;

pub(super) struct Links<'a> {
    driver: &'a dyn QueryBackend,
    subject: Subject,
    /// The selected links, or `None` if the requested link does not exist.
    chosen: Option<Vec<u32>>,
}

impl<'a> Links<'a> {
    /// Returns a GPU's number of links, or `None` if the GPU has no NVLink. Returns 0 for a lost
    /// GPU, whose number of links is unknown.
    pub(super) fn count_links(driver: &dyn QueryBackend, gpu: u32) -> Option<u32> {
        match driver.answer_query(Subject::from_gpu(gpu), Query::Field(LINK_COUNT_FIELD, 0)) {
            Ok(answer) => answer
                .number_at(0)
                .and_then(|count| u32::try_from(count).ok())
                .filter(|count| *count > 0),
            Err(Code::GPU_IS_LOST) => Some(0),
            Err(_) => None,
        }
    }

    /// Selects the link with the given number, or all links if `link` is `None` or negative.
    pub(super) fn new(
        driver: &'a dyn QueryBackend,
        subject: Subject,
        count: u32,
        link: Option<i64>,
    ) -> Self {
        let chosen = match link.map(u32::try_from) {
            None | Some(Err(_)) => Some((0..count).collect()),
            Some(Ok(link)) if link < count => Some(vec![link]),
            Some(Ok(_)) => None,
        };
        Self {
            driver,
            subject,
            chosen,
        }
    }

    /// Returns the selected links, or `None` if the requested link does not exist.
    pub(super) fn selected_links(&self) -> Option<&[u32]> {
        self.chosen.as_deref()
    }

    pub(super) fn is_active(&self, link: u32) -> bool {
        self.read_field(LINK_STATE_FIELD, link) == Some(1)
    }

    pub(super) fn read_field(&self, field: u32, link: u32) -> Option<i128> {
        self.read_number(Query::Field(field, link))
    }

    fn read_number(&self, query: Query) -> Option<i128> {
        self.read_value(query)?.number_at(0)
    }

    pub(super) fn read_value(&self, query: Query) -> Option<Value> {
        self.driver.answer_query(self.subject, query).ok()
    }
}

// The text about a GPU's links.

/// The ID of the field `NVML_FI_DEV_NVLINK_GET_SPEED`, in MB/s. `REMOTE_LINK_FIELD` is the ID of
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
const LINK_CAPABILITIES: [&str; 6] = [
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
pub(super) fn format_links(
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
            format!("\t Link {link}: {}\n", format_remote_bus_id(links, link))
        }));
    }
    if switches.contains("-R") {
        text.push_str(&format_each_link(links, |links, link| {
            let number = links
                .read_field(REMOTE_LINK_FIELD, link)
                .map_or_else(|| NOT_AVAILABLE.to_owned(), |id| id.to_string());
            format!(
                "\t Link {link}: Remote Device {}: Link {number}\n",
                format_remote_bus_id(links, link)
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
            &format_low_power(links).map_or_else(|| refuse(&text, 3, "Not supported\n"), Ok)?,
        );
    }
    if switches.contains("-gLWidth") {
        // Since Blackwell, links can have several widths, and NVML does not report the current
        // width.
        let architecture = links.read_number(Query::Architecture);
        if architecture.is_some_and(|architecture| architecture >= BLACKWELL) {
            return Err(Refusal::new_nvidia_only("nvlink -gLWidth"));
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
    let text = LINK_CAPABILITIES
        .iter()
        .zip(0..)
        .filter_map(|(words, capability)| {
            let has = links.read_number(Query::NvLinkCapability(link, capability))? != 0;
            Some(format!("\t Link {link}, {words}: {has}\n"))
        });
    text.collect()
}

fn format_remote_bus_id(links: &Links<'_>, link: u32) -> String {
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

// The low-power state of NVLinks, and its threshold.

/// The ID of the field `NVML_FI_DEV_NVLINK_GET_POWER_STATE` (0 is full power, 1 is low power).
/// `THRESHOLD_FIELD` is the ID of `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD`. The GPU reports the
/// unit of the threshold.
const POWER_STATE_FIELD: u32 = 167;
const THRESHOLD_FIELD: u32 = 168;

/// The ID of the field `NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX`. `MIN_THRESHOLD_FIELD` and
/// `THRESHOLD_UNIT_FIELD` are the IDs of its counterparts `_MIN` and `_UNITS`.
const MAX_THRESHOLD_FIELD: u32 = 200;
const MIN_THRESHOLD_FIELD: u32 = 223;
const THRESHOLD_UNIT_FIELD: u32 = 224;

/// `NVML_NVLINK_LOW_POWER_THRESHOLD_MIN` and `_MAX`, the threshold limits for GPUs that do not
/// report any.
const DEFAULT_THRESHOLD_RANGE: (i128, i128) = (1, 0x1FFF);

/// Returns each link's power state, and the idle time after which a link enters low power. Returns
/// `None` if the GPU has no low-power state.
fn format_low_power(links: &Links<'_>) -> Option<String> {
    let chosen = links.selected_links()?;
    links.read_field(POWER_STATE_FIELD, *chosen.first()?)?;
    let least = links
        .read_field(MIN_THRESHOLD_FIELD, 0)
        .unwrap_or(DEFAULT_THRESHOLD_RANGE.0);
    let most = links
        .read_field(MAX_THRESHOLD_FIELD, 0)
        .unwrap_or(DEFAULT_THRESHOLD_RANGE.1);
    // The threshold has one of two units: `NVML_NVLINK_LOW_POWER_THRESHOLD_UNIT_100US` or
    // `..._50US`.
    let unit_us = match links.read_field(THRESHOLD_UNIT_FIELD, 0) {
        Some(1) => 50,
        _ => 100,
    };
    let states = chosen
        .iter()
        .filter(|link| links.is_active(**link))
        .map(|link| {
            let state = if links.read_field(POWER_STATE_FIELD, *link)? == 0 {
                "High Speed State"
            } else {
                "Low Power State"
            };
            let threshold_us = links.read_field(THRESHOLD_FIELD, *link)? * unit_us;
            Some(format!(
                "\t Link {link}: Low Power Mode: {state}\n\t Link {link}: Low Power Threshold: \
                 {threshold_us} us\n\n"
            ))
        })
        .collect::<Option<String>>()?;
    Some(format!(
        "\t Low Power Threshold are in units of {unit_us} us\n\
         \t Range of Low Power Threshold values are {least} to {most}\n\n{states}"
    ))
}
