//! `power-profiles`, `power-smoothing` and `power-hint`.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::{Refusal, form::Form, subcommand::Stop};

pub(super) static PROFILES: Form = Form::new("power-profiles", PROFILES_HELP)
    .changing(&["-sr", "-cr"])
    .takes(&["-i", "-sr", "-cr"]);

pub(super) static SMOOTHING: Form = Form::new("power-smoothing", SMOOTHING_HELP)
    .changing(&[
        "-spp", "-ptf", "-rur", "-rdr", "-rdh", "-s", "-spf", "-pfawm", "-pftwm", "-pfao",
    ])
    .takes(&[
        "-i", "-p", "-spp", "-ptf", "-rur", "-rdr", "-rdh", "-s", "-spf", "-pfawm", "-pftwm",
        "-pfao",
    ]);

pub(super) static HINT: Form = Form::new("power-hint", HINT_HELP)
    .not_in_nvml(&["-l", "-gc", "-mc", "-t", "-p"])
    .takes(&["-i", "-gc", "-mc", "-t", "-p"]);

/// `NVML_FI_PWR_SMOOTHING_ENABLED`, or `NVML_FI_PWR_SMOOTHING_PRIV_LVL` of drivers before 580.82, which number fields
/// otherwise. A GPU has both or none.
const SMOOTHING_FIELD: u32 = 257;

/// What a GPU that has profiles shows of them is left to NVIDIA's own tool.
pub(crate) fn profiles(
    arguments: &[String],
    driver: &dyn QueryBackend,
    _: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = PROFILES.parse(arguments)?;
    let Some(switch) = switches.first_of(&["-l", "-ld", "-gr", "-ge"]) else {
        return Err(PROFILES.explain());
    };
    let gpus = Form::gpus(&switches, driver)?;
    if gpus.iter().any(|gpu| {
        driver
            .about(Subject::gpu(*gpu), Query::WorkloadPowerProfiles)
            .is_ok()
    }) {
        return Err(Refusal::not_in_nvml(&format!("power-profiles {switch}")).into());
    }
    Err(Refusal::new(
        3,
        "Workload Power Profiles feature is not supported on this device.\n",
    )
    .into())
}

/// What a GPU that can smooth shows of it is left to NVIDIA's own tool.
pub(crate) fn smoothing(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = SMOOTHING.parse(arguments)?;
    if !switches.has("-ppd") {
        return Err(SMOOTHING.explain());
    }
    let gpus = Form::gpus(&switches, driver)?;
    if gpus.iter().any(|gpu| {
        driver
            .about(Subject::gpu(*gpu), Query::Field(SMOOTHING_FIELD, 0))
            .is_ok()
    }) {
        return Err(Refusal::not_in_nvml("power-smoothing -ppd").into());
    }
    for _ in gpus {
        writeln!(output, "Power Smoothing is not supported on this device.")?;
    }
    Ok(0)
}

const PROFILES_HELP: &str = "
    Workload Power Profiles -- Settings of a GPU that suit a kind of work.

    Usage: nvidia-smi power-profiles [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-l | --list]: The profiles that there are
    [-ld | --list-detailed]: The same, with all about them
    [-gr | --get-requested]: The profiles that were asked for
    [-sr | --set-requested]: Asks for profiles; left to NVIDIA's tool
    [-cr | --clear-requested]: Asks for profiles no longer; left to NVIDIA's tool
    [-ge | --get-enforced]: The profiles in force


";

const SMOOTHING_HELP: &str = "
    Power Smoothing -- Limits how fast the power of a GPU rises and falls.

    Usage: nvidia-smi power-smoothing [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-p | --profile]: The profile by its number, for what sets one
    [-spp | --set-preset-profile]: Sets the profile in force; left to NVIDIA's tool
    [-ptf | --percent-tmp-floor]: Sets the floor in percent; left to NVIDIA's tool
    [-rur | --ramp-up-rate]: Sets how fast power rises, in mW/s; left to NVIDIA's tool
    [-rdr | --ramp-down-rate]: Sets how fast power falls, in mW/s; left to NVIDIA's tool
    [-rdh | --ramp-down-hysteresis]: Sets how long power waits before it falls, in ms; left to NVIDIA's tool
    [-ppd | --print-profile-definitions]: What each profile sets
    [-s | --state]: Turns it on or off: 0/DISABLED, 1/ENABLED; left to NVIDIA's tool
    [-spf | --secondary-power-floor]: Sets the second floor in mW; left to NVIDIA's tool
    [-pfawm | --primary-floor-act-win-mult]: Sets the first floor's activation window; left to NVIDIA's tool
    [-pftwm | --primary-floor-tar-win-mult]: Sets the first floor's target window; left to NVIDIA's tool
    [-pfao | --primary-floor-act-offset]: Sets the first floor's activation offset in mW; left to NVIDIA's tool


";

const HINT_HELP: &str = "
    Power Hint --   How much power clocks, temperature and kind of work would take.

    Usage: nvidia-smi power-hint [options]

    Options include:
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number. Several
                 are separated by commas

    [-l | --list-info]: What the other options may be

    [-gc | --graphics-clock]: Graphics clock in MHz (required)

    [-mc | --memory-clock]: Memory clock in MHz (optional)

    [-t | --temperature]: Degrees Celsius (required); n stands for minus

    [-p | --profile]: The kind of work by its number (required)

    [-h | --help]: Show this help



";
