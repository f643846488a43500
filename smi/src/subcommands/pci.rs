//! `pci` and `c2c`: what the links of a GPU to the rest of the machine have counted.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use crate::{Refusal, form::Form, headline::headline, subcommand::Stop};

pub(super) static PCI: Form = Form::new("pci", PCI_HELP)
    .changing(&["-cErrCnt"])
    .takes(&["-i"]);

pub(super) static C2C: Form = Form::new("c2c", C2C_HELP).takes(&["-i", "-l"]);

/// `NVML_FI_DEV_PCIE_REPLAY_COUNTER` and those of `NVML_FI_DEV_PCIE_COUNT_*` that count errors.
const ERRORS: [(u32, &str); 13] = [
    (94, "REPLAY_COUNTER"),
    (95, "REPLAY_ROLLOVER_COUNTER"),
    (169, "L0_TO_RECOVERY_COUNTER"),
    (173, "CORRECTABLE_ERRORS"),
    (174, "NAKS_RECEIVED"),
    (175, "RECEIVER_ERROR"),
    (176, "BAD_TLP"),
    (177, "NAKS_SENT"),
    (178, "BAD_DLLP"),
    (179, "NON_FATAL_ERROR"),
    (180, "FATAL_ERROR"),
    (181, "UNSUPPORTED_REQ"),
    (182, "LCRC_ERROR"),
];

/// `NVML_FI_DEV_PCIE_COUNT_LANE_ERROR`, lane by lane, and the most lanes that it counts for.
const LANE_ERRORS: u32 = 183;
const LANES: u32 = 16;

/// `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` and `..._RX_BYTES`.
const BYTES: [(u32, &str); 2] = [(197, "TX_BYTES"), (198, "RX_BYTES")];

/// `NVML_FI_DEV_C2C_LINK_COUNT`, `..._GET_STATUS`, `..._GET_MAX_BW` in MB/s.
const C2C_COUNT: u32 = 170;
const C2C_STATUS: u32 = 171;
const C2C_SPEED: u32 = 172;

pub(crate) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = PCI.parse(arguments)?;
    if switches.is_empty() {
        return Err(PCI.explain());
    }
    for gpu in Form::gpus(&switches, driver)? {
        writeln!(output, "{}", headline(driver, gpu)?)?;
        let mut text = String::new();
        if switches.has("-gErrCnt") {
            text.push_str(&counters(driver, gpu, &ERRORS));
            text.push_str(&line("LANE_ERROR", ""));
            let lanes =
                (0..LANES).map_while(|lane| Some((lane, field(driver, gpu, LANE_ERRORS, lane)?)));
            text.extend(lanes.map(|(lane, errors)| format!("\t lane {lane:>2}: {errors}\n")));
        }
        if switches.has("-gCnt") {
            text.push_str(&counters(driver, gpu, &BYTES));
        }
        output.write_all(text.as_bytes())?;
    }
    Ok(0)
}

pub(crate) fn c2c(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = C2C.parse(arguments)?;
    let Some(shown) = switches.first_of(&["-s", "-e", "-gLowPwrInfo"]) else {
        return Err(C2C.explain());
    };
    let chosen = switches.number("-l")?;
    let links: Vec<(u32, u32)> = Form::gpus(&switches, driver)?
        .into_iter()
        .filter_map(|gpu| Some((gpu, field(driver, gpu, C2C_COUNT, 0)? as u32)))
        .filter(|(_, links)| *links > 0)
        .collect();
    if links.is_empty() {
        return Err(Refusal::new(3, "No Devices support C2C.\n").into());
    }
    if shown != "-s" {
        return Err(Refusal::not_in_nvml(&format!("c2c {shown}")).into());
    }
    for (gpu, count) in links {
        writeln!(output, "{}", headline(driver, gpu)?)?;
        for link in (0..count).filter(|link| chosen.is_none_or(|chosen| chosen == i64::from(*link)))
        {
            let up = field(driver, gpu, C2C_STATUS, link) == Some(1);
            let speed = field(driver, gpu, C2C_SPEED, link)
                .filter(|_| up)
                .map_or_else(
                    || "<inactive>".to_owned(),
                    |mb_per_s| format!("{}.{:03} GB/s", mb_per_s / 1000, mb_per_s % 1000),
                );
            writeln!(output, "\t C2C Link {link}: {speed}")?;
        }
    }
    Ok(0)
}

fn field(driver: &dyn QueryBackend, gpu: u32, field: u32, scope: u32) -> Option<i128> {
    driver
        .about(Subject::gpu(gpu), Query::Field(field, scope))
        .ok()?
        .at(0)
}

fn counters(driver: &dyn QueryBackend, gpu: u32, fields: &[(u32, &str)]) -> String {
    let lines = fields.iter().map(|(id, name)| {
        let count =
            field(driver, gpu, *id, 0).map_or_else(|| "N/A".to_owned(), |count| count.to_string());
        line(name, &count)
    });
    lines.collect()
}

fn line(name: &str, value: &str) -> String {
    format!("    {:<24} {value}\n", format!("{name}:"))
}

const PCI_HELP: &str = "
    pci -- Shows what PCIe has counted

    Usage: nvidia-smi pci [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-gErrCnt | --getErrorCounters]: The counters of errors.
    [-cErrCnt | --clearErrorCounters]: Sets the counters of errors to zero; left to NVIDIA's tool.
    [-gCnt | --getCounters]: The counters of bytes.


";

const C2C_HELP: &str = "
    c2c -- Shows the chip-to-chip links of each GPU

    Usage: nvidia-smi c2c [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.

    [-l | --link]: Tell of the link of this number alone, instead of all.
    [-s | --status]: Which links are up, and how fast they are.
    [-e | --errorCounters]: How many errors each link has had.
    [-gLowPwrInfo | -getLowPowerInfo]: Which links save power


";
