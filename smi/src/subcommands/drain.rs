//! `drain`: whether a GPU is being taken out of use.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Code, QueryBackend, SystemQuery};

use crate::{Refusal, form::Form, subcommand::Stop};

pub(super) static FORM: Form = Form::new("drain", HELP)
    .changing(&["-m", "-r", "-d"])
    .takes(&["-p", "-m"]);

pub(crate) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    if !switches.has("-q") {
        return Err(FORM.explain());
    }
    let text = switches
        .value("-p")
        .ok_or_else(|| Refusal::new(2, "Must specify -p with this option.\n"))?;
    let (domain, bus, device) = place(text)
        .ok_or_else(|| Refusal::new(2, format!("Option \"{text}\" is invalid for \"-p\".\n")))?;
    let state = driver
        .system(SystemQuery::DrainState(domain, bus, device))
        .and_then(|answer| answer.at(0).ok_or(Code::UNKNOWN))
        .map_err(|_| Refusal::new(255, "Failed to query the GPU drain state.\n"))?;
    let state = if state == 0 {
        "not draining"
    } else {
        "draining"
    };
    writeln!(
        output,
        "The current drain state of GPU {domain:08X}:{bus:02X}:{device:02X}.0 is: {state}."
    )?;
    Ok(0)
}

/// Domain, bus and device of a bus id.
fn place(text: &str) -> Option<(u32, u32, u32)> {
    let place = text.split('.').next()?;
    let numbers: Vec<u32> = place
        .split(':')
        .map(|part| u32::from_str_radix(part, 16).ok())
        .collect::<Option<_>>()?;
    let [domain, bus, device] = numbers[..] else {
        return None;
    };
    Some((domain, bus, device))
}

const HELP: &str = "
    drain -- Shows whether a GPU is being taken out of use; also takes GPUs out and brings them back.

    Usage: nvidia-smi drain [options]

    Options include:
    [-p | --pciid]: The GPU at XXXX:YY.Z.a on the PCI bus
                   where XXXX = domain
                         YY   = bus
                         Z    = device
                         a    = function
    [-m | --modify]: Sets the drain state of the GPU of -p; left to NVIDIA's tool.
                   0 = not draining
                   1 = draining
    [-q | --query]: The drain state of the GPU of -p.
    [-r | --remove]: Takes the GPU of -p out; left to NVIDIA's tool.

    [-d | --discover]: Brings back the GPUs that were taken out; left to NVIDIA's tool.
    [-h | --help]: Show this help


";
