//! The summary's table of MIG devices, which is omitted if no GPU is in MIG mode.

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::{Query, Subject, Value};

use super::{
    super::Context,
    gpus::Row,
    text::{format_number, to_mib},
};

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
