//! Tests of `pmon` against the output of nvidia-smi 580 for two H200 GPUs.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery, Value};

use crate::{subcommand::tests::run_line, tests::scripted::ScriptedBackend};

const MIB: i128 = 1 << 20;

fn two_h200s() -> ScriptedBackend {
    let name = |text: &str| Ok(Value::Text(text.to_owned()));
    ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(2)))
        .with_system_answer(
            SystemQuery::ProcessName(1538),
            name("/opt/torch/.venv/bin/python3"),
        )
        .with_system_answer(
            SystemQuery::ProcessName(1540),
            name("/opt/torch/.venv/bin/python3 -c \u{1b}[31m/x"),
        )
        .with_system_answer(
            SystemQuery::ProcessName(1539),
            name("nvidia-cuda-mps-server"),
        )
        .with_numbers(
            0,
            Query::ComputeProcesses,
            &[1540, 5730 * MIB, -1, -1, 1538, 1732 * MIB, -1, -1],
        )
        .with_numbers(1, Query::ComputeProcesses, &[1539, 5730 * MIB, -1, -1])
        .with_numbers(
            0,
            Query::ProcessUtilization(0),
            &[7, 1538, 90, 20, 0, 0, -1, -1, 9, 1538, 98, 22, 0, 3, -1, 0],
        )
        .with_numbers(
            1,
            Query::ProcessUtilization(0),
            &[8, 1539, 0, 0, 0, 0, 0, 0],
        )
        .with_numbers(0, Query::ProtectedMemory, &[0, 0, 0])
}

#[test]
fn process_rows_match_nvidia_smi() {
    let (text, code) = run_line("pmon -c 1 -s um", &two_h200s());
    assert_eq!(
        text,
        "\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command 
# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name 
    0       1538     C     98     22      -      3      -      -   1732      0    python3        
    0       1540     C      -      -      -      -      -      -   5730      0    python3 -c  [31
    1       1539     C      0      0      -      -      -      -   5730      -    nvidia-cuda-mps
"
    );
    assert_eq!(code, 0);
}

#[test]
fn gpu_without_processes_has_dashes() {
    let driver = ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(1)));
    assert_eq!(
        run_line("pmon -c 1 -s m", &driver).0,
        "\
# gpu         pid   type     fb   ccpm    command 
# Idx           #    C/G     MB     MB    name 
    0          -     -      -      -    -              
"
    );
}

#[test]
fn process_in_two_lists_has_one_row() {
    let driver = two_h200s()
        .with_numbers(
            0,
            Query::GraphicsProcesses,
            &[1538, -1, -1, -1, 77, -1, -1, -1],
        )
        .with_numbers(1, Query::MpsProcesses, &[1539, 10 * MIB, -1, -1]);
    let (text, _) = run_line("pmon -c 1 -s m", &driver);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..5], ["0", "77", "G", "-", "0"]);
    assert_eq!(rows[1][..4], ["0", "1538", "C+G", "1732"]);
    assert_eq!(rows[3][..4], ["1", "1539", "M+C", "5730"]);
}

#[test]
fn missing_sample_is_a_dash() {
    let driver = two_h200s().with_answer(
        gpumon_probe::vendor::nvml::query::Subject::from_gpu(0),
        Query::ProcessUtilization(0),
        Err(Code::NOT_FOUND),
    );
    let (text, _) = run_line("pmon -c 1 -i 0", &driver);
    assert_eq!(
        text.lines().nth(2).unwrap().split_whitespace().nth(3),
        Some("-")
    );
}

#[test]
fn interval_above_ten_seconds_is_refused() {
    let (text, code) = run_line("pmon -d 11 -c 1", &two_h200s());
    assert!(text.starts_with(
        "Collection delay/interval should be between 1 second and 10 seconds\n\n    Usage: \
         nvidia-smi pmon"
    ));
    assert_eq!(code, 0);
}

#[test]
fn at_most_four_gpus_are_shown() {
    let driver = ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(8)));
    assert_eq!(run_line("pmon -c 1", &driver).0.lines().count(), 6);
}
