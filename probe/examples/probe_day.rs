//! Reads a day's samples, 86,400 of them, as fast as possible, to test whether memory use grows.
//!
//! Prints `{"begin_kb":…,"end_kb":…,"seconds":…}`: the resident memory after the first hour's
//! samples and after the last sample. The environment variable `GPUMON_NVML_LIB` selects the NVML
//! library to load.

use std::{
    fs,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::Record,
    owner::CommandLines,
    sampler::{self, Options},
    vendor::{Roots, SourceChoice},
};

const SAMPLES: u32 = 86_400;
const HOUR: u32 = 3_600;

/// The interval between samples, which is as short as possible. Each sample waits for GPUs for at
/// most half of this interval.
const INTERVAL: Duration = Duration::from_millis(2);

fn main() {
    let source = SourceChoice::Nvml
        .open(&Roots {
            nvml_lib: std::env::var_os("GPUMON_NVML_LIB"),
            ..Roots::default()
        })
        .expect("the NVML library can be loaded");
    let options = Options {
        details: true,
        events: true,
        ..Options::new(INTERVAL, CommandLines::Own)
    };
    let (mut samples, mut begin_kb, begun) = (0, 0, Instant::now());
    let mut written = Vec::new();
    let ran = sampler::run_sampler(&source, &options, |record| {
        written.clear();
        serde_json::to_writer(&mut written, record).expect("records can be written");
        samples += u32::from(matches!(record, Record::Sample(_)));
        if samples == HOUR && begin_kb == 0 {
            begin_kb = resident_kb();
        }
        if samples == SAMPLES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    ran.expect("the GPUs can be read");
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{{\"begin_kb\":{begin_kb},\"end_kb\":{},\"seconds\":{seconds:.1}}}",
        resident_kb()
    );
}

fn resident_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
