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
    switches::{Switch, Switches, Values, perhaps, plain, valued},
};

const SWITCHES: &[Switch] = &[
    plain(&["-h", "--help"]),
    valued(&["-i", "--id"]),
    valued(&["-l", "--link"]),
    plain(&["-s", "--status"]),
    plain(&["-c", "--capabilities"]),
    plain(&["-p", "--pcibusid"]),
    plain(&["-R", "--remotelinkinfo"]),
    perhaps(&["-sc", "--setcontrol"]),
    perhaps(&["-gc", "--getcontrol"]),
    perhaps(&["-g", "--getcounters"]),
    perhaps(&["-r", "--resetcounters"]),
    plain(&["-e", "--errorcounters"]),
    plain(&["-ec", "--crcerrorcounters"]),
    plain(&["-re", "--reseterrorcounters"]),
    valued(&["-gt", "--getthroughput"]).of(Values::One(&["d", "r"])),
    perhaps(&["-sLowPwrThres", "--setLowPowerThreshold"]),
    plain(&["-gLowPwrInfo", "--getLowPowerInfo"]),
    perhaps(&["-sBwMode", "--setBandwidthMode"]),
    plain(&["-gBwMode", "--getBandwidthMode"]),
    plain(&["-cBridge", "--checkBridge"]),
    perhaps(&["-sLWidth", "--setLinkWidth"]),
    plain(&["-gLWidth", "--getLinkWidth"]),
    plain(&["-info", "--info"]),
];

/// What changes a GPU.
const SETTERS: &[&str] = &["-re", "-sLowPwrThres", "-sBwMode", "-sLWidth"];

/// What nvidia-smi no longer does, and what it says about it. Each ends the process with code 3.
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

/// Runs `nvlink`.
pub(super) fn run(arguments: &[String], driver: &dyn QueryBackend, output: &mut dyn Write) -> Result<u8, Stop> {
    let switches = Switches::parse(SWITCHES, arguments)?;
    if switches.is_empty() || switches.has("-h") {
        return Err(Refusal::new(0, help::HELP).into());
    }
    if let Some(setter) = switches.first_of(SETTERS) {
        return Err(Refusal::changes_the_gpu(&format!("nvlink {setter}")).into());
    }
    // Which lane had an error is told by none of NVML's counters.
    if switches.has("-ec") {
        return Err(Refusal::not_told("nvlink -ec").into());
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
            Ok(told) => writeln!(output, "{told}")?,
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
