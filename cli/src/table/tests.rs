//! Whole tables, at several widths.

use std::time::Duration;

use gpumon_probe::{
    model::{Absence, GpuSample, Health, Inventory, Reading},
    owner::CommandLines,
    sampler::{Options, once},
    source::SourceChoice,
};
use unicode_width::UnicodeWidthStr;

use super::*;

fn sample_of(source: &str) -> (Inventory, Sample) {
    let source = source.parse::<SourceChoice>().unwrap().open(None).unwrap();
    let options = Options::new(Duration::from_secs(1), CommandLines::All);
    let moment = once(&source.into(), &options).unwrap();
    (moment.inventory, moment.sample)
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let (inventory, mut sample) = sample_of("sim:8");
    sample.gpus[1] = GpuSample::absent(1, None, 0, Health::Lost { since_ms: 0 }, &Absence::GpuLost);
    for width in [24, 40, 60, 72, 80, 100, 132, 300] {
        for unicode in [false, true] {
            for line in plain(&render(&inventory, &sample, Layout { width: Some(width), unicode })).lines() {
                assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
            }
        }
    }
}

#[test]
fn every_gpu_and_every_process_has_its_line_and_simulated_is_said() {
    let (inventory, sample) = sample_of("sim:8");
    let text = plain(&render(&inventory, &sample, Layout { width: None, unicode: false }));
    assert!(text.lines().next().unwrap().contains("simulated"), "{text}");
    for gpu in &sample.gpus {
        assert!(text.lines().any(|line| line.trim_start().starts_with(&format!("{} H", gpu.index))), "{text}");
        for process in gpu.processes.value().unwrap() {
            assert!(text.contains(&process.pid.to_string()), "{text}");
        }
    }
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn a_lost_gpu_keeps_its_line_with_dashes_and_never_a_zero() {
    let (inventory, mut sample) = sample_of("sim:3");
    let at_ms = sample.at_ms;
    sample.gpus[1] = GpuSample::absent(1, None, at_ms, Health::Lost { since_ms: at_ms }, &Absence::GpuLost);
    let text = plain(&render(&inventory, &sample, Layout { width: None, unicode: false }));
    let line = text.lines().find(|line| line.trim_start().starts_with("1 H")).unwrap();
    let readings = line.replace("H200", "");
    assert!(readings.contains("GPU lost") && readings.contains(" - ") && !readings.contains('0'), "{line}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("2 H")), "{text}");
}

#[test]
fn a_command_line_cannot_drive_the_terminal() {
    let (inventory, mut sample) = sample_of("sim:8");
    // Which GPUs have a process is a matter of the hour, but some always do.
    let process = sample.gpus.iter_mut().find_map(|gpu| match &mut gpu.processes {
        Reading::Now(processes) => processes.first_mut(),
        _ => None,
    });
    process.unwrap().command = Reading::Now("evil \u{1b}[2J\u{7} \n more".to_owned());
    let text = render(&inventory, &sample, Layout { width: None, unicode: false });
    assert!(plain(&text).contains("evil  [2J    more"), "{text:?}");
}
