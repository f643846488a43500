//! The `nvlink` subcommand, which shows the NVLinks of each GPU.

mod links;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Code, Query, QueryBackend, Subject, SystemQuery};

use self::links::Links;
use crate::{
    Refusal, error_messages,
    gpu_list::{find_listed_gpus, is_divided_into_mig},
    release::Release,
    subcommand::{AllowedValues, SubcommandError, SubcommandSyntax},
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

/// The first release that states why a GPU has no links, and that writes the name as “Nvlink”.
/// Older releases leave out GPUs without links.
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
        if release >= REWORDED_SINCE && is_divided_into_mig(driver, gpu) {
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
        let text = links::format_links(&links, &switches, release)?;
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

/// Returns the heading line for a GPU, which contains its index, name, and UUID, without a line
/// break.
fn format_headline(driver: &dyn QueryBackend, gpu: u32) -> Result<String, Refusal> {
    let text = |query| -> Result<String, Code> {
        let answer = driver.answer_query(Subject::from_gpu(gpu), query)?;
        Ok(answer.text().unwrap_or("").to_owned())
    };
    let line = text(Query::Name)
        .and_then(|name| Ok(format!("GPU {gpu}: {name} (UUID: {})", text(Query::Uuid)?)));
    line.map_err(|code| {
        let message = error_messages::format_lost_gpu(gpu, text(Query::BusId).ok(), code);
        Refusal::new(code.0 as u8, message)
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod headline_tests {
    use super::*;
    use crate::tests::scripted::ScriptedBackend;

    #[test]
    fn lost_gpu_is_reported() {
        let driver = ScriptedBackend::default()
            .with_answer(Subject::from_gpu(1), Query::Name, Err(Code::GPU_IS_LOST))
            .with_text(1, Query::BusId, "0000:65:00.0");
        let refusal = format_headline(&driver, 1).unwrap_err();
        assert_eq!(
            refusal.text,
            "Unable to determine the device handle for GPU1: 0000:65:00.0: GPU is lost.  Reboot \
             the system to recover this GPU\n"
        );
        assert_eq!(refusal.code, 15);
    }
}
