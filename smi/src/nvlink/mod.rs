//! The `nvlink` subcommand, which shows the NVLinks of each GPU.

mod headline;
mod links;
mod power;
mod show;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{QueryBackend, Subject, SystemQuery};

use self::{headline::headline, links::Links};
use super::{
    form::Form,
    release::Release,
    select::{is_divided, select},
    subcommand::Stop,
    switches::Values,
};

pub(super) static FORM: Form = Form {
    name: "nvlink",
    usage: include_str!("help.txt"),
    takes: &["-i", "-l"],
    values: &[("-gt", Values::One(&["d", "r"]))],
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
    // NVML has no counters per lane.
    handed_over: &["-ec"],
    deprecated: &[
        DEPRECATED[0].0,
        DEPRECATED[1].0,
        DEPRECATED[2].0,
        DEPRECATED[3].0,
    ],
    ..Form::EMPTY
};

/// The options that nvidia-smi no longer supports, each with its message. They end the process with
/// exit code 3.
const DEPRECATED: [(&str, &str); 4] = [
    ("-sc", "Warning: Setting counter control is deprecated!\n\n"),
    ("-gc", "Warning: Getting counter control is deprecated!\n\n"),
    (
        "-g",
        "Warning: Getting counters using option -g is deprecated.\n       Please use option -gt instead.\n\n",
    ),
    ("-r", "Warning: Resetting counters is deprecated!\n\n"),
];

/// The first release that reports why a GPU has no links and that writes “Nvlink”. Older releases
/// leave such a GPU out.
const REWORDED: Release = Release(590, 0);

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    if switches.is_empty() {
        return Err(FORM.explain());
    }
    let link = switches.number("-l")?;
    let gpus = select(driver, switches.value("-i"))?;
    if switches.has("-gBwMode") {
        writeln!(
            output,
            "GPU NVLINK bandwidth mode: {}",
            bandwidth_mode(driver)
        )?;
        return Ok(0);
    }
    let release = Release::running(driver);
    let mut code = 0;
    for gpu in gpus {
        let count = Links::count(driver, gpu);
        if count.is_none() && release < REWORDED {
            continue;
        }
        match headline(driver, gpu) {
            Ok(text) => writeln!(output, "{text}")?,
            Err(refusal) => {
                output.write_all(refusal.text.as_bytes())?;
                code = refusal.code;
                continue;
            }
        }
        if release >= REWORDED && is_divided(driver, gpu) {
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
        let links = Links::new(driver, Subject::gpu(gpu), count, link);
        let text = show::all(&links, &switches, release)?;
        output.write_all(text.as_bytes())?;
    }
    Ok(code)
}

/// Returns nvidia-smi's words for the value of `nvmlSystemGetNvlinkBwMode`.
fn bandwidth_mode(driver: &dyn QueryBackend) -> &'static str {
    match driver
        .system(SystemQuery::NvlinkBandwidthMode)
        .ok()
        .and_then(|answer| answer.at(0))
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
