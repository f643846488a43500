//! `gpm`, `prm`, `daemon` and `replay`: other ways to watch.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use super::form::Form;
use crate::{
    Refusal, monitor, return_code,
    subcommand::Stop,
    switches::{Switch, Switches, with_value, without_value},
};

pub(super) const GPM: Form = Form::new("gpm", GPM_HELP).changing(&["-s"]).takes(&[
    without_value(&["-h", "--help"]),
    with_value(&["-i", "--id"]),
    with_value(&["-s", "--set-stream-state"]),
    without_value(&["-g", "--get-stream-state"]),
]);

pub(super) const PRM: Form = Form::new("prm", PRM_HELP).not_in_nvml(&["-l", "-n", "-f", "-p", "-c"]).takes(&[
    without_value(&["-h", "--help"]),
    with_value(&["-i", "--index"]),
    without_value(&["-l", "--list"]),
    with_value(&["-n", "--name"]),
    without_value(&["-f", "--info"]),
    with_value(&["-p", "--params"]),
    with_value(&["-c", "--counters"]),
]);

pub(crate) fn gpm(arguments: &[String], driver: &dyn QueryBackend, output: &mut dyn Write) -> Result<u8, Stop> {
    let switches = GPM.parse(arguments)?;
    if !switches.has("-g") {
        return Err(GPM.explain());
    }
    // All GPUs stream, or none: one line tells.
    let gpu = Form::gpus(&switches, driver)?[0];
    let state = match driver.about(Subject::gpu(gpu), Query::GpmStreaming).map(|answer| answer.at(0)) {
        Ok(Some(0)) => "DISABLED",
        Ok(Some(_)) => "ENABLED",
        Ok(None) => "N/A",
        Err(code) => return_code::plain(code),
    };
    writeln!(output, "GPM stream state: {state}")?;
    Ok(0)
}

pub(crate) fn daemon(arguments: &[String], _: &dyn QueryBackend, _: &mut dyn Write) -> Result<u8, Stop> {
    let [id, delay, _, select, _, _, help] = monitor::COMMON;
    let [path, join] = [&["-p", "--path"], &["-j", "--join"]].map(|names| with_value(names));
    let known = [id, delay, select, help, path, join, without_value(&["-t", "--term"])];
    let text = "gpumon: 'daemon' belongs to NVIDIA's own nvidia-smi; 'gpumon serve' watches GPUs in the background\n";
    Err(refused(arguments, &known, [DAEMON_ABOUT, DAEMON_USAGE], text))
}

pub(crate) fn replay(arguments: &[String], _: &dyn QueryBackend, _: &mut dyn Write) -> Result<u8, Stop> {
    let [id, _, _, select, _, file, help] = monitor::COMMON;
    let [begin, end, redirect] =
        [&["-b", "--begin"], &["-e", "--end"], &["-r", "--redirect"]].map(|names| with_value(names));
    let known = [id, select, file, help, begin, end, redirect];
    let text = "gpumon: 'replay' reads what 'nvidia-smi daemon' wrote; use NVIDIA's own nvidia-smi for it\n";
    Err(refused(arguments, &known, [REPLAY_ABOUT, REPLAY_USAGE], text))
}

/// What stops a subcommand that is known and refused as a whole: a fault, the help, or that.
fn refused(arguments: &[String], known: &[Switch], [about, usage]: [&str; 2], text: &str) -> Stop {
    match Switches::parse(known, arguments) {
        Err(fault) => monitor::explain(fault, usage).into(),
        Ok(switches) if switches.has("-h") => Refusal::new(0, format!("{about}{usage}")).into(),
        Ok(_) => Refusal::new(3, text).into(),
    }
}

const GPM_HELP: &str = "
    gpm -- Shows whether GPM's metrics are streamed.

    Usage: nvidia-smi gpm [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.
                 Several are separated by commas.
    [-s | --set-stream-state]: Starts or stops the stream; gpumon refuses it
    [-g | --get-stream-state]: Whether metrics are streamed


";

const PRM_HELP: &str = "    \
    [-h | --help]: Show this help
    [-i | --index]: GPU by its index; -n and -c need it
    [-l | --list]: The registers and counters that there are
    [-n | --name]: A register by its name
    [-f | --info]: The parameters of a register or counter
    [-p | --params]: Parameters, as <key>=<value> separated by commas
    [-c | --counters]: Counters by their names; all of them without a name, or with \"all\"
";

const DAEMON_ABOUT: &str = "
    Watches GPUs in the background, and keeps what it reads in files.
";

const DAEMON_USAGE: &str = concat!(
    "
    Usage: nvidia-smi daemon [options]

    Options include:
    [-i | --id]:          GPUs by index, PCI bus ID, UUID or serial number, separated by commas
    [-d | --delay]:       Seconds between two readings [default=10secs]
    [-s | --select]:      Groups of readings [default=puc]
                          Any of these letters:
",
    monitor::letters!(),
    "    [-p | --path]:        Directory to write to [default]:
                              Unix - /var/log/nvstats
                              Windows - C:/Program Files/NVIDIA Corporation/NVSMI
    [-j | --join]:        Text to add to the name of the file
    [-t | --term]:        Ends it
    [-h | --help]:        Show this help

    gpumon has 'gpumon serve' for this, and refuses it here.


"
);

const REPLAY_ABOUT: &str = "
    Shows what a file of the daemon holds.
";

const REPLAY_USAGE: &str = concat!(
    "
    Usage: nvidia-smi replay [options]

    Options include:
    [-i | --id]:          GPUs by index, separated by commas
    [-s | --select]:      Groups of readings [default=puc]
                          Any of these letters:
",
    monitor::letters!(),
    "    [-f | --filename]:    The file, with its whole path [mandatory]
    [-b | --begin]:       From this time on (HH:MM:SS). [default=0] is the start of the file
    [-e | --end]:         Up to this time (HH:MM:SS). [default=0] is the end of the file
    [-r | --redirect]:    File to write to
    [-h | --help]:        Show this help

    gpumon writes no such files, and refuses it here.


"
);
