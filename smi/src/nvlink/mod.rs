//! `nvlink`: the links of each GPU.

mod help;
mod links;
mod power;
mod show;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{QueryBackend, Subject, SystemQuery};

use self::links::Links;
use super::{
    Refusal,
    headline::headline,
    select::select,
    subcommand::{Stop, Typing},
    switches::{Switch, Switches, Values, with_optional_value, with_value, without_value},
};

const SWITCHES: &[Switch] = &[
    without_value(&["-h", "--help"]),
    with_value(&["-i", "--id"]),
    with_value(&["-l", "--link"]),
    without_value(&["-s", "--status"]),
    without_value(&["-c", "--capabilities"]),
    without_value(&["-p", "--pcibusid"]),
    without_value(&["-R", "--remotelinkinfo"]),
    with_optional_value(&["-sc", "--setcontrol"]),
    with_optional_value(&["-gc", "--getcontrol"]),
    with_optional_value(&["-g", "--getcounters"]),
    with_optional_value(&["-r", "--resetcounters"]),
    without_value(&["-e", "--errorcounters"]),
    without_value(&["-ec", "--crcerrorcounters"]),
    without_value(&["-re", "--reseterrorcounters"]),
    with_value(&["-gt", "--getthroughput"]).of(Values::One(&["d", "r"])),
    with_optional_value(&["-sLowPwrThres", "--setLowPowerThreshold"]),
    without_value(&["-gLowPwrInfo", "--getLowPowerInfo"]),
    with_optional_value(&["-sBwMode", "--setBandwidthMode"]),
    without_value(&["-gBwMode", "--getBandwidthMode"]),
    without_value(&["-cBridge", "--checkBridge"]),
    with_optional_value(&["-sLWidth", "--setLinkWidth"]),
    without_value(&["-gLWidth", "--getLinkWidth"]),
    without_value(&["-info", "--info"]),
];

const SETTERS: &[&str] = &["-re", "-sLowPwrThres", "-sBwMode", "-sLWidth"];

/// What nvidia-smi no longer does, and its message. Each ends the process with code 3.
const DEPRECATED: [(&str, &str); 4] = [
    ("-sc", "Warning: Setting counter control is deprecated!\n\n"),
    ("-gc", "Warning: Getting counter control is deprecated!\n\n"),
    ("-g", "Warning: Getting counters using option -g is deprecated.\n       Please use option -gt instead.\n\n"),
    ("-r", "Warning: Resetting counters is deprecated!\n\n"),
];

/// How it is typed, for shells and manuals.
pub(super) const TYPING: Typing =
    Typing { switches: SWITCHES, refused: [SETTERS, NOT_SHOWN], head: help::HELP, usage: help::HELP };

/// What NVML does not tell, and what is deprecated.
const NOT_SHOWN: &[&str] = &["-ec", DEPRECATED[0].0, DEPRECATED[1].0, DEPRECATED[2].0, DEPRECATED[3].0];

pub(super) fn run(arguments: &[String], driver: &dyn QueryBackend, output: &mut dyn Write) -> Result<u8, Stop> {
    let switches = Switches::parse(SWITCHES, arguments)?;
    if switches.is_empty() || switches.has("-h") {
        return Err(Refusal::new(0, help::HELP).into());
    }
    if let Some(setter) = switches.first_of(SETTERS) {
        return Err(Refusal::changes_the_gpu(&format!("nvlink {setter}")).into());
    }
    // None of NVML's counters is per lane.
    if switches.has("-ec") {
        return Err(Refusal::not_in_nvml("nvlink -ec").into());
    }
    let link = switches.number("-l")?;
    let gpus = select(driver, switches.value("-i"))?;
    if switches.has("-gBwMode") {
        writeln!(output, "GPU NVLINK bandwidth mode: {}", bandwidth_mode(driver))?;
        return Ok(0);
    }
    let mut code = 0;
    for gpu in gpus {
        let Some(count) = Links::count(driver, gpu) else { continue };
        match headline(driver, gpu) {
            Ok(text) => writeln!(output, "{text}")?,
            Err(refusal) => {
                output.write_all(refusal.text.as_bytes())?;
                code = refusal.code;
                continue;
            }
        }
        let links = Links::new(driver, Subject::gpu(gpu), count, link);
        let text = show::all(&links, &switches)?;
        output.write_all(text.as_bytes())?;
    }
    Ok(code)
}

/// The words of `nvmlSystemGetNvlinkBwMode`.
fn bandwidth_mode(driver: &dyn QueryBackend) -> &'static str {
    match driver.system(SystemQuery::NvlinkBandwidthMode).ok().and_then(|answer| answer.at(0)) {
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
