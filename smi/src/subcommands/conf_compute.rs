//! `conf-compute`: what is protected from the machine's own operator.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject, SystemQuery};

use crate::{Refusal, form::Form, headline::headline, subcommand::Stop};

pub(super) static FORM: Form = Form::new("conf-compute", HELP)
    .changing(&["-sm", "-srs", "-skr"])
    .takes(&["-i", "-sm", "-srs", "-skr"]);

/// What can be shown, in the order in which it is.
const SHOWN: [&str; 10] = [
    "-gc", "-gg", "-d", "-e", "-f", "-gm", "-grs", "-gkr", "-mgm", "-q",
];

pub(crate) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    if switches.first_of(&SHOWN).is_none() {
        return Err(FORM.explain());
    }
    let gpus = Form::gpus(&switches, driver)?;
    for switch in SHOWN.into_iter().filter(|switch| switches.has(switch)) {
        let text = show(driver, &gpus, switch)?;
        output.write_all(text.as_bytes())?;
    }
    Ok(0)
}

fn show(driver: &dyn QueryBackend, gpus: &[u32], switch: &str) -> Result<String, Refusal> {
    let settings = Settings { driver };
    Ok(match switch {
        "-gc" => format!("CPU CC capabilities: {}\n", settings.cpu()),
        "-gg" => format!("GPU CC capabilities: {}\n", settings.gpus()),
        "-d" => format!("DevTools Mode: {}\n", settings.switched(2)),
        "-e" => format!("CC Environment: {}\n", settings.environment()),
        "-f" => format!("CC status: {}\n", settings.switched(1)),
        "-gm" => {
            let mut text = String::new();
            for gpu in gpus {
                text.push_str(&memory(driver, *gpu)?);
            }
            text
        }
        "-grs" => format!(
            "\nConfidential Compute GPUs Ready state: {}\n\n",
            settings.ready("ready", "not-ready")
        ),
        "-gkr" => {
            let advantage = settings.number(SystemQuery::ConfComputeKeyRotation, 0);
            let advantage =
                advantage.map_or_else(|| NOT_AVAILABLE.to_owned(), |number| number.to_string());
            format!(
                "\nConfidential Compute Key Rotation Threshold Attacker Advantage: {advantage}\n\n"
            )
        }
        "-mgm" => format!("Multi-GPU Mode: {}\n", settings.several()),
        _ => format!(
            "\n==============NVSMI CONF-COMPUTE LOG==============\n\n    \
             CC State                   : {}\n    \
             Multi-GPU Mode             : {}\n    \
             CPU CC Capabilities        : {}\n    \
             GPU CC Capabilities        : {}\n    \
             CC GPUs Ready State        : {}\n\n",
            settings.switched(1),
            settings.several(),
            settings.cpu(),
            settings.gpus(),
            settings.ready("Ready", "Not Ready"),
        ),
    })
}

const NOT_AVAILABLE: &str = "N/A";

struct Settings<'a> {
    driver: &'a dyn QueryBackend,
}

impl Settings<'_> {
    fn number(&self, query: SystemQuery, place: usize) -> Option<i128> {
        self.driver.system(query).ok()?.at(place)
    }

    /// `NVML_CC_SYSTEM_CPU_CAPS_*`.
    fn cpu(&self) -> &'static str {
        match self.number(SystemQuery::ConfComputeCapabilities, 0) {
            Some(0) => "None",
            Some(1) => "AMD SEV",
            Some(2) => "INTEL TDX",
            Some(3) => "AMD SEV-SNP",
            Some(4) => "AMD SEV-SNP vTOM",
            _ => NOT_AVAILABLE,
        }
    }

    /// `NVML_CC_SYSTEM_GPUS_CC_*`.
    fn gpus(&self) -> &'static str {
        match self.number(SystemQuery::ConfComputeCapabilities, 1) {
            Some(0) => "CC Not Capable",
            Some(_) => "CC Capable",
            None => NOT_AVAILABLE,
        }
    }

    /// `NVML_CC_SYSTEM_ENVIRONMENT_*`.
    fn environment(&self) -> &'static str {
        match self.number(SystemQuery::ConfComputeState, 0) {
            Some(0) => "UNAVAILABLE",
            Some(1) => "SIM",
            Some(2) => "PROD",
            _ => NOT_AVAILABLE,
        }
    }

    /// Whether the feature (1) or the developers' tools (2) are on.
    fn switched(&self, place: usize) -> &'static str {
        match self.number(SystemQuery::ConfComputeState, place) {
            Some(0) => "OFF",
            Some(_) => "ON",
            None => NOT_AVAILABLE,
        }
    }

    fn ready(&self, yes: &'static str, no: &'static str) -> &'static str {
        match self.number(SystemQuery::ConfComputeReady, 0) {
            Some(0) => no,
            Some(_) => yes,
            None => NOT_AVAILABLE,
        }
    }

    /// `NVML_CC_SYSTEM_MULTIGPU_*`.
    fn several(&self) -> &'static str {
        match self.number(SystemQuery::ConfComputeSettings, 3) {
            Some(0) => "None",
            Some(1) => "Protected PCIe",
            Some(2) => "NVLE",
            _ => NOT_AVAILABLE,
        }
    }
}

fn memory(driver: &dyn QueryBackend, gpu: u32) -> Result<String, Refusal> {
    let answer = driver
        .about(Subject::gpu(gpu), Query::ConfComputeMemorySize)
        .ok();
    let kib = |place| {
        let size = answer.as_ref().and_then(|answer| answer.at(place));
        size.map_or_else(|| NOT_AVAILABLE.to_owned(), |size| format!("{size} KiB"))
    };
    let line = headline(driver, gpu)?;
    Ok(format!(
        "{line}\nProtected memory size:   {}\nUnprotected memory size: {}\n",
        kib(0),
        kib(1)
    ))
}

const HELP: &str = "
    conf-compute -- Shows how confidential computing is set up.

    Usage: nvidia-smi conf-compute [options]

    Options include:
    [-h | --help]: Show this help
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.
                 Several are separated by commas.
    [-gc | --get-cpu-caps]: What the CPU is capable of
    [-gg | --get-gpus-caps]: What the GPUs are capable of
    [-d | --get-devtools-mode]: Whether developers' tools may look in
    [-e | --get-environment]: The environment
    [-f | --get-cc-feature]: Whether it is on
    [-gm | --get-mem-size-info]: How much memory of each GPU is protected, and how much is not
    [-sm | --set-unprotected-mem-size]: Sets how much memory is not protected; left to NVIDIA's tool
    [-srs | --set-gpus-ready-state]: Sets whether GPUs accept work; left to NVIDIA's tool
    [-grs | --get-gpus-ready-state]: Whether GPUs accept work
    [-skr | --set-key-rotation-max-attacker-advantage]: Sets when keys are changed; left to NVIDIA's tool
    [-gkr | --get-key-rotation-threshold-info]: When keys are changed
    [-mgm | --get-multigpu-mode]: How several GPUs work together
    [-q | --query-conf-compute]: All of it


";
