//! The `nvlink` subcommand, which shows the NVLinks of each GPU.

mod headline;
mod links;
mod power;
mod show;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{QueryBackend, Subject, SystemQuery};

use self::{headline::format_headline, links::Links};
use super::{
    form::SubcommandSyntax,
    release::Release,
    select::{find_listed_gpus, is_divided},
    subcommand::SubcommandError,
    switches::AllowedValues,
};

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "nvlink",
    usage: include_str!("help.txt"),
    takes: &["-i", "-l"],
    values: &[("-gt", AllowedValues::One(&["d", "r"]))],
    may_take: &[
        "-sc",
        "-gc",
        "-g",
        "-r",
        "-sLowPwrThres",
        "-sBwMode",
        "-sLWidth",
    ],
    changing: &["-re", "-sLowPwrThres", "-sBwMode", "-sLWidth"],
    // NVML cannot query counters per lane.
    handed_over: &["-ec"],
    deprecated: &[
        DEPRECATED_OPTIONS[0].0,
        DEPRECATED_OPTIONS[1].0,
        DEPRECATED_OPTIONS[2].0,
        DEPRECATED_OPTIONS[3].0,
    ],
    ..SubcommandSyntax::EMPTY
};

/// The options that nvidia-smi no longer supports, and the message for each. With these options,
/// nvidia-smi ends with exit code 3.
const DEPRECATED_OPTIONS: [(&str, &str); 4] = [
    ("-sc", "Warning: Setting counter control is deprecated!\n\n"),
    ("-gc", "Warning: Getting counter control is deprecated!\n\n"),
    (
        "-g",
        "Warning: Getting counters using option -g is deprecated.\n       Please use option -gt \
         instead.\n\n",
    ),
    ("-r", "Warning: Resetting counters is deprecated!\n\n"),
];

/// The first release that reports why a GPU has no links, and that spells “Nvlink” this way. Older
/// releases do not list GPUs without links.
const REWORDED_SINCE: Release = Release(590, 0);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, SubcommandError> {
    let switches = SYNTAX.parse(arguments)?;
    if switches.is_empty() {
        return Err(SYNTAX.help_as_error());
    }
    let link = switches.parse_number("-l")?;
    let gpus = find_listed_gpus(driver, switches.value("-i"))?;
    if switches.contains("-gBwMode") {
        writeln!(
            output,
            "GPU NVLINK bandwidth mode: {}",
            format_bandwidth_mode(driver)
        )?;
        return Ok(0);
    }
    let release = Release::from_driver(driver);
    let mut code = 0;
    for gpu in gpus {
        let count = Links::count_links(driver, gpu);
        if count.is_none() && release < REWORDED_SINCE {
            continue;
        }
        match format_headline(driver, gpu) {
            Ok(text) => writeln!(output, "{text}")?,
            Err(refusal) => {
                output.write_all(refusal.text.as_bytes())?;
                code = refusal.code;
                continue;
            }
        }
        if release >= REWORDED_SINCE && is_divided(driver, gpu) {
            writeln!(
                output,
                "Nvlink queries are not supported for Devices in MIG mode"
            )?;
            continue;
        }
        let Some(count) = count else {
            writeln!(output, "Device does not have or support Nvlink")?;
            continue;
        };
        let links = Links::new(driver, Subject::from_gpu(gpu), count, link);
        let text = show::format_all(&links, &switches, release)?;
        output.write_all(text.as_bytes())?;
    }
    Ok(code)
}

/// Returns nvidia-smi's word for the mode that `nvmlSystemGetNvlinkBwMode` returns.
fn format_bandwidth_mode(driver: &dyn QueryBackend) -> &'static str {
    match driver
        .answer_system(SystemQuery::NvlinkBandwidthMode)
        .ok()
        .and_then(|answer| answer.number_at(0))
    {
        Some(0) => "FULL",
        Some(1) => "OFF",
        Some(2) => "MIN",
        Some(3) => "HALF",
        Some(4) => "3QUARTER",
        _ => "N/A",
    }
}

#[cfg(test)]
mod tests;
