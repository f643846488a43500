//! The table of MIG devices; there is none where MIG is off everywhere.

use std::fmt::Write;

use gpumon_probe::vendor::nvml::query::{Query, Subject};

use super::{
    super::Context,
    gpus::Row,
    text::{mib, number},
};

pub(super) struct MigDevice {
    index: u32,
    gpu_instance: String,
    compute_instance: String,
    memory: (String, String),
    bar1: (String, String),
    multiprocessors: String,
    ecc: String,
    /// Copy engines, encoders, decoders, OFAs, JPEG decoders.
    engines: [String; 5],
}

impl MigDevice {
    pub(super) fn read_all(context: &Context<'_>, gpu: u32) -> Vec<Self> {
        let devices = context
            .ask(gpu, Query::MigDevices)
            .map_or_else(|_| Vec::new(), |list| list.numbers().to_vec());
        devices
            .into_iter()
            .map(|device| Self::read(context, Subject::mig(gpu, device as u32), device as u32))
            .collect()
    }

    fn read(context: &Context<'_>, subject: Subject, index: u32) -> Self {
        let ask = |query| context.driver.about(subject, query);
        let instance = ask(Query::MigInstance);
        let attributes = ask(Query::MigAttributes);
        let (memory, bar1) = (ask(Query::MemoryInfo), ask(Query::Bar1MemoryInfo));
        let plain = |place| number(&attributes, place, |count| count.to_string());
        let size = |bytes| format!("{}MiB", mib(bytes));
        Self {
            index,
            gpu_instance: number(&instance, 0, |id| id.to_string()),
            compute_instance: number(&instance, 1, |id| id.to_string()),
            memory: (number(&memory, 3, size), number(&memory, 0, size)),
            bar1: (number(&bar1, 2, size), number(&bar1, 0, size)),
            multiprocessors: plain(0),
            // Uncorrected errors of its own caches since the driver was loaded: all that is counted per instance.
            ecc: number(&ask(Query::MemoryErrors(1, 0, 7)), 0, |count| {
                count.to_string()
            }),
            engines: [plain(1), plain(3), plain(2), plain(5), plain(4)],
        }
    }

    fn render(&self, gpu: u32) -> String {
        let Self {
            index,
            gpu_instance,
            compute_instance,
            multiprocessors,
            ecc,
            ..
        } = self;
        let [copy, encoders, decoders, ofas, jpegs] = &self.engines;
        // Their last letters stand below each other, up to the size that needs the room behind.
        let ((used, total), (bar1_used, bar1_total)) = (&self.memory, &self.bar1);
        let (total, bar1_total) = (format!("{total:>8}"), format!("{bar1_total:>8}"));
        format!(
            "| {gpu:>2}  {gpu_instance:>3}  {compute_instance:>2}  {index:>2}  | {used:>18} / {total:<12}| \
             {multiprocessors:>2}   {ecc:>4} | {copy:>2}  {encoders:>2}   {decoders:>2}   {ofas:>2}   {jpegs:>2} |\n\
             |                  | {bar1_used:>18} / {bar1_total:<12}|           |                       |\n\
             {BORDER}",
        )
    }
}

const BORDER: &str =
    "+------------------+----------------------------------+-----------+-----------------------+\n";

pub(super) fn render(rows: &[Row]) -> String {
    if !rows.iter().any(|row| row.is_mig) {
        return String::new();
    }
    let line = "-".repeat(super::WIDTH);
    let mut out = format!(
        "\n+{line}+\n\
         | MIG devices:                                                                            |\n\
         {BORDER}\
         | GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |\n\
         |      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n\
         |                  |                                  |        ECC|                       |\n\
         |==================+==================================+===========+=======================|\n"
    );
    let devices: Vec<String> = rows
        .iter()
        .flat_map(|row| {
            row.mig_devices
                .iter()
                .map(|device| device.render(row.index))
        })
        .collect();
    if devices.is_empty() {
        let _ = writeln!(out, "|  {:<87}|\n+{line}+", "No MIG devices found");
    }
    out.extend(devices);
    out
}
