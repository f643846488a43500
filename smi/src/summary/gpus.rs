//! The three lines of each GPU in the summary.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Value};

use super::{
    super::{
        Context,
        running::{kind, running},
    },
    mig,
    text::{self, mib, number},
};

pub(super) struct Row {
    pub(super) index: u32,
    pub(super) text: String,
    pub(super) bus_id: String,
    pub(super) is_mig: bool,
    pub(super) mig_devices: Vec<String>,
    pub(super) processes: Vec<Process>,
    pub(super) inforom_is_corrupt: bool,
}

pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) kind: &'static str,
    /// The used memory in bytes.
    pub(super) memory: Option<i128>,
    /// The IDs of the GPU instance and the compute instance.
    pub(super) instance: Option<(i128, i128)>,
}

impl Row {
    pub(super) fn read(context: &Context<'_>, gpu: u32) -> Self {
        let ask = |query| context.ask(gpu, query);
        let mig = ask(Query::MigMode);
        let is_mig = mig.as_ref().is_ok_and(|mode| mode.at(0) == Some(1));
        let percent = |query| number(&ask(query), 0, |percent| format!("{percent}%"));
        let bus_id = words(&ask(Query::BusId));
        let processes = Process::read_all(context, gpu);
        // Checking the infoROM takes 70 ms. Therefore only a server checks it, and does so once.
        let inforom_is_corrupt = context.driver.is_quick()
            && processes.is_empty()
            && ask(Query::InforomIsValid) == Err(Code::CORRUPTED_INFOROM);
        let text = format!(
            "| {gpu:>3}  {name:<27}    {persistence:<3} |   {bus_id:<16} {display:>3} | \
             {ecc:>20} |\n\
             | {fan:>3}  {temperature:>4}    {performance:<3}          {power:>5} / {limit:>5} | \
             {memory:>22} | {utilization:>7} {compute:>12} |\n\
             |                                         |                        | {mig:>20} |\n\
             {border}",
            name = text::head(&words(&ask(Query::Name)), 27),
            persistence = on_off(&ask(Query::PersistenceMode)),
            display = on_off(&ask(Query::DisplayActive)),
            ecc = ecc(context, gpu, is_mig),
            fan = percent(Query::FanSpeed),
            temperature = number(&ask(Query::Temperature), 0, |celsius| format!("{celsius}C")),
            performance = number(&ask(Query::PerformanceState), 0, performance_state),
            power = watts(&ask(Query::PowerUsage)),
            limit = watts(&ask(Query::EnforcedPowerLimit)),
            memory = format_memory(&ask(Query::MemoryInfo)),
            utilization = percent(Query::UtilizationRates),
            compute = compute_mode(&ask(Query::ComputeMode)),
            mig = match &mig {
                Ok(mode) if mode.at(0) == Some(1) && mode.at(1) == Some(0) => "Enabled*",
                Ok(mode) if mode.at(0) == Some(1) => "Enabled",
                Ok(mode) if mode.at(1) == Some(1) => "Disabled*",
                Ok(_) => "Disabled",
                Err(code) => text::missing(*code),
            },
            border = border(),
        );
        Self {
            index: gpu,
            text,
            bus_id,
            is_mig,
            mig_devices: if is_mig {
                mig::render_devices(context, gpu)
            } else {
                Vec::new()
            },
            processes,
            inforom_is_corrupt,
        }
    }
}

pub(super) fn border() -> &'static str {
    "+-----------------------------------------+------------------------+----------------------+\n"
}

fn words(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => text::missing(*code).to_owned(),
    }
}

fn on_off(answer: &Answer) -> &'static str {
    match answer {
        Ok(value) if value.at(0) == Some(0) => "Off",
        Ok(_) => "On",
        Err(code) => text::missing(*code),
    }
}

/// Formats the ECC errors. A GPU in MIG mode has no counters for the whole GPU, so only the ECC
/// mode is shown.
fn ecc(context: &Context<'_>, gpu: u32, is_mig: bool) -> String {
    match context.ask(gpu, Query::EccMode) {
        Ok(mode) if mode.at(0) == Some(0) => "Off".to_owned(),
        Ok(_) if is_mig => "On".to_owned(),
        Ok(_) => number(&context.ask(gpu, Query::TotalEccErrors(1, 0)), 0, |count| {
            count.to_string()
        }),
        Err(code) => text::missing(code).to_owned(),
    }
}

/// Formats whole watts. A missing value is followed by a space in place of the unit.
fn watts(answer: &Answer) -> String {
    match answer {
        Err(code) => format!("{} ", text::missing(*code)),
        known => number(known, 0, |milliwatts| format!("{}W", milliwatts / 1000)),
    }
}

/// Formats used and total memory. The cell is left-aligned if the GPU has no memory of its own.
fn format_memory(answer: &Answer) -> String {
    let bytes = |memory: &Value| Some((memory.at(3)?, memory.at(0)?));
    match answer {
        Err(Code::NOT_SUPPORTED) => format!("{:<22}", "Not Supported"),
        Ok(memory) => bytes(memory).map_or_else(
            || "N/A  ".to_owned(),
            |(used, total)| format!("{:>4}MiB / {:>6}MiB", mib(used), mib(total)),
        ),
        Err(_) => "N/A  ".to_owned(),
    }
}

fn performance_state(state: i128) -> String {
    if state > 15 {
        "N/A".to_owned()
    } else {
        format!("P{state}")
    }
}

fn compute_mode(answer: &Answer) -> &'static str {
    match answer {
        Ok(mode) => match mode.at(0) {
            Some(0) => "Default",
            Some(1) => "E. Thread",
            Some(2) => "Prohibited",
            Some(3) => "E. Process",
            _ => "N/A",
        },
        Err(code) => text::missing(*code),
    }
}

impl Process {
    fn read_all(context: &Context<'_>, gpu: u32) -> Vec<Self> {
        let rows = running(|query| context.ask(gpu, query)).unwrap_or_default();
        let process = |[gi, ci, pid, kinds, memory]: [i128; 5]| Self {
            pid: pid as u32,
            kind: kind(kinds),
            memory: (memory >= 0).then_some(memory),
            instance: (gi >= 0 && ci >= 0).then_some((gi, ci)),
        };
        rows.into_iter().map(process).collect()
    }
}
