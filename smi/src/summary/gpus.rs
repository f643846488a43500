//! The three lines that the summary shows for each GPU.

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Subject, Value};

use super::{format_number, to_mib};
use crate::{
    Context,
    running_processes::{kind_letters, read_running_processes},
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
    /// The process's memory in bytes, if known.
    pub(super) memory: Option<i128>,
    /// The GPU instance and compute instance that the process runs on, if any.
    pub(super) instance: Option<(i128, i128)>,
}

impl Row {
    pub(super) fn read(context: &Context<'_>, gpu: u32) -> Self {
        let ask = |query| context.run_query(gpu, query);
        let mig = ask(Query::MigMode);
        let is_mig = mig.as_ref().is_ok_and(|mode| mode.number_at(0) == Some(1));
        let percent = |query| format_number(&ask(query), 0, |percent| format!("{percent}%"));
        let bus_id = format_text(&ask(Query::BusId));
        let processes = Process::read_all(context, gpu);
        // Checking the InfoROM takes 70 ms. Therefore, only a server checks it, and only once.
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
            name = super::cut_end(&format_text(&ask(Query::Name)), 27),
            persistence = format_on_off(&ask(Query::PersistenceMode)),
            display = format_on_off(&ask(Query::DisplayActive)),
            ecc = format_ecc(context, gpu, is_mig),
            fan = percent(Query::FanSpeed),
            temperature =
                format_number(&ask(Query::Temperature), 0, |celsius| format!("{celsius}C")),
            performance = format_number(&ask(Query::PerformanceState), 0, format_performance_state),
            power = format_watts(&ask(Query::PowerUsage)),
            limit = format_watts(&ask(Query::EnforcedPowerLimit)),
            memory = format_memory(&ask(Query::MemoryInfo)),
            utilization = percent(Query::UtilizationRates),
            compute = format_compute_mode(&ask(Query::ComputeMode)),
            mig = match &mig {
                Ok(mode) if mode.number_at(0) == Some(1) && mode.number_at(1) == Some(0) =>
                    "Enabled*",
                Ok(mode) if mode.number_at(0) == Some(1) => "Enabled",
                Ok(mode) if mode.number_at(1) == Some(1) => "Disabled*",
                Ok(_) => "Disabled",
                Err(code) => super::find_replacement_word(*code),
            },
            border = border_line(),
        );
        Self {
            index: gpu,
            text,
            bus_id,
            is_mig,
            mig_devices: if is_mig {
                render_devices(context, gpu)
            } else {
                Vec::new()
            },
            processes,
            inforom_is_corrupt,
        }
    }
}

pub(super) fn border_line() -> &'static str {
    "+-----------------------------------------+------------------------+----------------------+\n"
}

fn format_text(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => super::find_replacement_word(*code).to_owned(),
    }
}

fn format_on_off(answer: &Answer) -> &'static str {
    match answer {
        Ok(value) if value.number_at(0) == Some(0) => "Off",
        Ok(_) => "On",
        Err(code) => super::find_replacement_word(*code),
    }
}

/// Formats the number of ECC errors. A GPU in MIG mode has no counters for the whole GPU, so only
/// the ECC mode is shown.
fn format_ecc(context: &Context<'_>, gpu: u32, is_mig: bool) -> String {
    match context.run_query(gpu, Query::EccMode) {
        Ok(mode) if mode.number_at(0) == Some(0) => "Off".to_owned(),
        Ok(_) if is_mig => "On".to_owned(),
        Ok(_) => format_number(
            &context.run_query(gpu, Query::TotalEccErrors(1, 0)),
            0,
            |count| count.to_string(),
        ),
        Err(code) => super::find_replacement_word(code).to_owned(),
    }
}

/// Formats a power in whole watts. The word for a missing value is followed by a space, because it
/// has no unit.
fn format_watts(answer: &Answer) -> String {
    match answer {
        Err(code) => format!("{} ", super::find_replacement_word(*code)),
        known => format_number(known, 0, |milliwatts| format!("{}W", milliwatts / 1000)),
    }
}

/// Formats the used and total memory. If the GPU has no memory of its own, the cell is
/// left-aligned.
fn format_memory(answer: &Answer) -> String {
    let bytes = |memory: &Value| Some((memory.number_at(3)?, memory.number_at(0)?));
    match answer {
        Err(Code::NOT_SUPPORTED) => format!("{:<22}", "Not Supported"),
        Ok(memory) => bytes(memory).map_or_else(
            || "N/A  ".to_owned(),
            |(used, total)| format!("{:>4}MiB / {:>6}MiB", to_mib(used), to_mib(total)),
        ),
        Err(_) => "N/A  ".to_owned(),
    }
}

fn format_performance_state(state: i128) -> String {
    if state > 15 {
        "N/A".to_owned()
    } else {
        format!("P{state}")
    }
}

fn format_compute_mode(answer: &Answer) -> &'static str {
    match answer {
        Ok(mode) => match mode.number_at(0) {
            Some(0) => "Default",
            Some(1) => "E. Thread",
            Some(2) => "Prohibited",
            Some(3) => "E. Process",
            _ => "N/A",
        },
        Err(code) => super::find_replacement_word(*code),
    }
}

impl Process {
    fn read_all(context: &Context<'_>, gpu: u32) -> Vec<Self> {
        let rows =
            read_running_processes(|query| context.run_query(gpu, query)).unwrap_or_default();
        let process = |[gi, ci, pid, kinds, memory]: [i128; 5]| Self {
            pid: pid as u32,
            kind: kind_letters(kinds),
            memory: (memory >= 0).then_some(memory),
            instance: (gi >= 0 && ci >= 0).then_some((gi, ci)),
        };
        rows.into_iter().map(process).collect()
    }
}

// The summary's table of MIG devices, which is omitted if no GPU is in MIG mode.

/// Returns the lines for all of a GPU's MIG devices.
pub(super) fn render_devices(context: &Context<'_>, gpu: u32) -> Vec<String> {
    let devices = context.run_query(gpu, Query::MigDevices);
    let devices = devices.iter().flat_map(Value::numbers);
    devices
        .map(|device| render_device(context, gpu, *device as u32))
        .collect()
}

fn render_device(context: &Context<'_>, gpu: u32, index: u32) -> String {
    let ask = |query| {
        context
            .driver
            .answer_query(Subject::from_mig(gpu, index), query)
    };
    let instance = ask(Query::MigInstance);
    let attributes = ask(Query::MigAttributes);
    let (memory, bar1) = (ask(Query::MemoryInfo), ask(Query::Bar1MemoryInfo));
    let plain = |answer, place| format_number(answer, place, |count| count.to_string());
    let attribute = |place| plain(&attributes, place);
    let size = |bytes| format!("{}MiB", to_mib(bytes));
    // Sizes are right-aligned unless they are wider than their column.
    let total = |answer| format!("{:>8}", format_number(answer, 0, size));
    format!(
        "| {gpu:>2}  {gpu_instance:>3}  {compute_instance:>2}  {index:>2}  | \
         {used:>18} / {total:<12}| {multiprocessors:>2}   {ecc:>4} | \
         {copy:>2}  {encoders:>2}   {decoders:>2}   {ofas:>2}   {jpegs:>2} |\n\
         |                  | {bar1_used:>18} / {bar1_total:<12}|           \
         |                       |\n\
         {BORDER}",
        gpu_instance = plain(&instance, 0),
        compute_instance = plain(&instance, 1),
        used = format_number(&memory, 3, size),
        total = total(&memory),
        multiprocessors = attribute(0),
        // For a MIG device, the driver counts only uncorrected errors in the device's own caches.
        ecc = plain(&ask(Query::MemoryErrors(1, 0, 7)), 0),
        copy = attribute(1),
        encoders = attribute(3),
        decoders = attribute(2),
        ofas = attribute(5),
        jpegs = attribute(4),
        bar1_used = format_number(&bar1, 2, size),
        bar1_total = total(&bar1),
    )
}

const BORDER: &str =
    "+------------------+----------------------------------+-----------+-----------------------+\n";

pub(super) fn render_mig_table(rows: &[Row]) -> String {
    if !rows.iter().any(|row| row.is_mig) {
        return String::new();
    }
    let line = "-".repeat(super::WIDTH);
    let mut out = format!(
        "\n+{line}+\n| MIG \
         devices:                                                                            \
         |\n{BORDER}| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        \
         Shared         |\n|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE \
         ENC  DEC  OFA  JPG |\n|                  |                                  |        \
         ECC|                       \
         |\n|==================+==================================+===========+=======================|\n"
    );
    let devices: String = rows
        .iter()
        .flat_map(|row| row.mig_devices.clone())
        .collect();
    if devices.is_empty() {
        let _ = writeln!(out, "|  {:<87}|\n+{line}+", "No MIG devices found");
    }
    out + &devices
}
