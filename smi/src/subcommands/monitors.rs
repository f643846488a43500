//! `gpm`, `prm`, `daemon` and `replay`: other ways to watch.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::{Refusal, form::Form, monitor, return_code, subcommand::Stop};

pub(super) static GPM: Form = Form::new("gpm", GPM_HELP)
    .changing(&["-s"])
    .takes(&["-i", "-s"]);

pub(super) static PRM: Form = Form::new("prm", PRM_HELP)
    .not_in_nvml(&["-l", "-n", "-f", "-p", "-c"])
    .takes(&["-i", "-n", "-p", "-c"]);

pub(super) static DAEMON: Form = Form::new("daemon", DAEMON_USAGE)
    .monitor(DAEMON_ABOUT)
    .refused()
    .takes(&["-i", "-d", "-s", "-p", "-j"]);

pub(super) static REPLAY: Form = Form::new("replay", REPLAY_USAGE)
    .monitor(REPLAY_ABOUT)
    .refused()
    .takes(&["-i", "-s", "-f", "-b", "-e", "-r"]);

pub(crate) fn gpm(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = GPM.parse(arguments)?;
    if !switches.has("-g") {
        return Err(GPM.explain());
    }
    // All GPUs stream, or none: one line tells.
    let gpu = Form::gpus(&switches, driver)?[0];
    let state = match driver
        .about(Subject::gpu(gpu), Query::GpmStreaming)
        .map(|answer| answer.at(0))
    {
        Ok(Some(0)) => "DISABLED",
        Ok(Some(_)) => "ENABLED",
        Ok(None) => "N/A",
        Err(code) => return_code::plain(code),
    };
    writeln!(output, "GPM stream state: {state}")?;
    Ok(0)
}

pub(crate) fn daemon(
    arguments: &[String],
    _: &dyn QueryBackend,
    _: &mut dyn Write,
) -> Result<u8, Stop> {
    DAEMON.parse(arguments)?;
    let text = "gpumon: 'daemon' belongs to NVIDIA's own nvidia-smi; 'gpumon serve' watches GPUs in the background\n";
    Err(Refusal::not_done(text).into())
}

pub(crate) fn replay(
    arguments: &[String],
    _: &dyn QueryBackend,
    _: &mut dyn Write,
) -> Result<u8, Stop> {
    REPLAY.parse(arguments)?;
    let text = "gpumon: 'replay' reads what 'nvidia-smi daemon' wrote; use NVIDIA's own nvidia-smi for it\n";
    Err(Refusal::not_done(text).into())
}

const GPM_HELP: &str = "
    gpm -- Shows whether GPM's metrics are streamed.

    Usage: nvidia-smi gpm [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.
                 Several are separated by commas.
    [-s | --set-stream-state]: Starts or stops the stream; left to NVIDIA's tool
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

    gpumon has 'gpumon serve' for this, and leaves it to NVIDIA's tool here.


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

    gpumon writes no such files, and leaves them to NVIDIA's tool.


"
);
