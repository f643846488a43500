//! The summary, which consists of tables for GPUs, MIG devices (if any), and processes.

use std::{collections::HashMap, fmt::Write};

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query, Subject, SystemQuery, Value};

use super::{
    Context, error_messages,
    formats::{DATE_AND_TIME, round_up_to_mib},
    release::{VERSIONS_RENAMED, tool_version},
    running_processes::{kind_letters, read_running_processes},
};

const TABLE_WIDTH: usize = 89;

/// Returns the complete text of one summary.
pub(crate) fn render_summary(context: &Context<'_>) -> String {
    let rows = context.map_gpus(|gpu| GpuRow::read(context, gpu));
    let mut out = render_head(context);
    for row in &rows {
        out.push_str(&row.text);
    }
    out.push_str(&render_mig_table(&rows));
    out.push_str(&render_process_table(context, &rows));
    for row in rows.iter().filter(|row| row.inforom_is_corrupt) {
        let _ = writeln!(
            out,
            "WARNING: infoROM is corrupted at gpu {}",
            shorten_bus_id(&row.bus_id)
        );
    }
    out
}

fn render_head(context: &Context<'_>) -> String {
    let text = |query| {
        context
            .run_system_query(query)
            .ok()
            .and_then(|value| value.text().map(str::to_owned))
    };
    let driver = text(SystemQuery::DriverVersion).unwrap_or_else(|| "N/A".to_owned());
    let tool = tool_version(context).unwrap_or_else(|| driver.clone());
    let cuda = context.cuda_version().unwrap_or_else(|_| "N/A".to_owned());
    let date = context.now.strftime(DATE_AND_TIME);
    let line = "-".repeat(TABLE_WIDTH);
    let versions = if context.release() < VERSIONS_RENAMED {
        format!("{tool:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8}")
    } else {
        format!("{tool:<22} KMD Version: {driver:<13} CUDA UMD Version: {cuda:<8}")
    };
    format!(
        "{date}       \n+{line}+\n| NVIDIA-SMI {versions} |\n\
         {GPU_BORDER}| GPU  Name                 \
         Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n| Fan  Temp   \
         Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. \
         |\n|                                         |                        |               MIG \
         M. \
         |\n|=========================================+========================+======================|\n"
    )
}

// The three lines for each GPU.

const GPU_BORDER: &str =
    "+-----------------------------------------+------------------------+----------------------+\n";

struct GpuRow {
    index: u32,
    text: String,
    bus_id: String,
    is_mig: bool,
    mig_devices: Vec<String>,
    processes: Vec<Process>,
    inforom_is_corrupt: bool,
}

struct Process {
    pid: u32,
    kind: &'static str,
    /// The process's memory in bytes, if known.
    memory: Option<i128>,
    /// The GPU instance and compute instance that the process runs on, if any.
    instance: Option<(i128, i128)>,
}

impl GpuRow {
    fn read(context: &Context<'_>, gpu: u32) -> Self {
        let ask = |query| context.run_query(gpu, query);
        let mig = ask(Query::MigMode);
        let is_mig = mig.as_ref().is_ok_and(|mode| mode.number_at(0) == Some(1));
        let percent = |query| format_number(&ask(query), 0, |percent| format!("{percent}%"));
        let bus_id = format_text(&ask(Query::BusId));
        let processes = Process::read_all(context, gpu);
        // Checking the InfoROM takes 70 ms. It is therefore checked only by a server, and only
        // once.
        let inforom_is_corrupt = context.driver.answers_from_memory()
            && processes.is_empty()
            && ask(Query::InforomIsValid) == Err(Code::CORRUPTED_INFOROM);
        let text = format!(
            "| {gpu:>3}  {name:<27}    {persistence:<3} |   {bus_id:<16} {display:>3} | \
             {ecc:>20} |\n\
             | {fan:>3}  {temperature:>4}    {performance:<3}          {power:>5} / {limit:>5} | \
             {memory:>22} | {utilization:>7} {compute:>12} |\n\
             |                                         |                        | {mig:>20} |\n\
             {GPU_BORDER}",
            name = cut_end(&format_text(&ask(Query::Name)), 27),
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
                Err(code) => find_replacement_word(*code),
            },
        );
        Self {
            index: gpu,
            text,
            bus_id,
            is_mig,
            mig_devices: if is_mig {
                render_mig_devices(context, gpu)
            } else {
                Vec::new()
            },
            processes,
            inforom_is_corrupt,
        }
    }
}

fn format_text(answer: &Answer) -> String {
    match answer {
        Ok(value) => value.text().unwrap_or("N/A").to_owned(),
        Err(code) => find_replacement_word(*code).to_owned(),
    }
}

fn format_on_off(answer: &Answer) -> &'static str {
    match answer {
        Ok(value) if value.number_at(0) == Some(0) => "Off",
        Ok(_) => "On",
        Err(code) => find_replacement_word(*code),
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
        Err(code) => find_replacement_word(code).to_owned(),
    }
}

/// Formats a power in whole watts. The word for a missing value is followed by a space, because it
/// has no unit.
fn format_watts(answer: &Answer) -> String {
    match answer {
        Err(code) => format!("{} ", find_replacement_word(*code)),
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
            |(used, total)| {
                format!(
                    "{:>4}MiB / {:>6}MiB",
                    round_up_to_mib(used),
                    round_up_to_mib(total)
                )
            },
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
        Err(code) => find_replacement_word(*code),
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

// The table of MIG devices, which is omitted if no GPU is in MIG mode.

const MIG_BORDER: &str =
    "+------------------+----------------------------------+-----------+-----------------------+\n";

fn render_mig_table(rows: &[GpuRow]) -> String {
    if !rows.iter().any(|row| row.is_mig) {
        return String::new();
    }
    let line = "-".repeat(TABLE_WIDTH);
    let mut out = format!(
        "\n+{line}+\n| MIG \
         devices:                                                                            \
         |\n{MIG_BORDER}| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        \
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

/// Returns the lines for all of a GPU's MIG devices.
fn render_mig_devices(context: &Context<'_>, gpu: u32) -> Vec<String> {
    let devices = context.run_query(gpu, Query::MigDevices);
    let devices = devices.iter().flat_map(Value::numbers);
    devices
        .map(|device| render_mig_device(context, gpu, *device as u32))
        .collect()
}

fn render_mig_device(context: &Context<'_>, gpu: u32, index: u32) -> String {
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
    let size = |bytes| format!("{}MiB", round_up_to_mib(bytes));
    // Sizes are right-aligned unless they are wider than their column.
    let total = |answer| format!("{:>8}", format_number(answer, 0, size));
    format!(
        "| {gpu:>2}  {gpu_instance:>3}  {compute_instance:>2}  {index:>2}  | \
         {used:>18} / {total:<12}| {multiprocessors:>2}   {ecc:>4} | \
         {copy:>2}  {encoders:>2}   {decoders:>2}   {ofas:>2}   {jpegs:>2} |\n\
         |                  | {bar1_used:>18} / {bar1_total:<12}|           \
         |                       |\n\
         {MIG_BORDER}",
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

// The table of processes.

fn render_process_table(context: &Context<'_>, rows: &[GpuRow]) -> String {
    let line = "-".repeat(TABLE_WIDTH);
    let mut out = format!(
        "\n+{line}+\n| \
         Processes:                                                                              \
         |\n|  GPU   GI   CI              PID   Type   Process name                        GPU \
         Memory |\n|        ID   ID                                                               \
         Usage      |\n|{}|\n",
        "=".repeat(TABLE_WIDTH)
    );
    let mut names = HashMap::new();
    let mut is_empty = true;
    for row in rows {
        for process in &row.processes {
            let name = names
                .entry(process.pid)
                .or_insert_with(|| format_process_name(context, process.pid));
            out.push_str(&format_process_line(row.index, process, name));
            is_empty = false;
        }
    }
    if is_empty {
        let _ = writeln!(out, "|  {:<87}|", "No running processes found");
    }
    let _ = writeln!(out, "+{line}+");
    out
}

fn format_process_line(gpu: u32, process: &Process, name: &str) -> String {
    // A number ends one column further left than `N/A`.
    let id = |id: Option<i128>| id.map_or_else(|| "N/A".to_owned(), |id| format!("{id} "));
    let memory = process.memory.map_or_else(
        || "N/A     ".to_owned(),
        |bytes| format!("{}MiB", round_up_to_mib(bytes)),
    );
    format!(
        "| {gpu:>4}   {gi:>3}  {ci:>3} {pid:>15} {kind:>6}   {name:<32} {memory:>13} |\n",
        gi = id(process.instance.map(|(gi, _)| gi)),
        ci = id(process.instance.map(|(_, ci)| ci)),
        pid = process.pid,
        kind = process.kind,
        name = cut_start(name, 32),
    )
}

/// Returns a process's name for display. The user who started the process chooses its name, so
/// control characters are removed before they reach the terminal.
fn format_process_name(context: &Context<'_>, pid: u32) -> String {
    match context.run_system_query(SystemQuery::ProcessName(pid)) {
        Ok(value) => value.text().unwrap_or("-").replace(char::is_control, "?"),
        Err(code) => error_messages::describe_code_in_brackets(code),
    }
}

// Cells: text truncated to a width, and words for missing values.

/// Returns the word that replaces a missing value in a narrow cell.
fn find_replacement_word(code: Code) -> &'static str {
    if code == Code::NOT_SUPPORTED {
        "N/A"
    } else {
        "ERR!"
    }
}

fn format_number(answer: &Answer, place: usize, show: impl FnOnce(i128) -> String) -> String {
    match answer {
        Ok(value) => value
            .number_at(place)
            .map_or_else(|| "N/A".to_owned(), show),
        Err(code) => find_replacement_word(*code).to_owned(),
    }
}

/// Truncates text to `width` by replacing its end with dots.
fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

/// Truncates text to `width` by replacing its start with dots.
fn cut_start(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    "..."
        .chars()
        .chain(text.chars().skip(count - (width - 3)))
        .collect()
}

/// Shortens a bus ID's domain from eight to four digits, if the first four digits are zeros.
fn shorten_bus_id(bus_id: &str) -> &str {
    bus_id
        .strip_prefix("0000")
        .filter(|rest| rest.starts_with(|c: char| c != ':'))
        .unwrap_or(bus_id)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod text_tests {
    use super::*;

    #[test]
    fn long_text_is_cut_with_dots() {
        assert_eq!(
            cut_end("NVIDIA RTX PRO 6000 Blackwell Server Edition", 27),
            "NVIDIA RTX PRO 6000 Blac..."
        );
        assert_eq!(cut_end("NVIDIA H200", 27), "NVIDIA H200");
        assert_eq!(
            cut_start("/home/ana/micromamba/envs/sam6d/bin/python", 32),
            "...romamba/envs/sam6d/bin/python"
        );
        assert_eq!(
            cut_start("/usr/libexec/gnome-initial-setup", 32),
            "/usr/libexec/gnome-initial-setup"
        );
        assert_eq!(shorten_bus_id("00000000:65:00.0"), "0000:65:00.0");
    }
}
