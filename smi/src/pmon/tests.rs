//! Compares `pmon` with the output of nvidia-smi 580 for two H200 GPUs.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery, Value};

use crate::{subcommand::tests::typed, tests::scripted::ScriptedBackend};

const MIB: i128 = 1 << 20;

fn two() -> ScriptedBackend {
    let name = |text: &str| Ok(Value::Text(text.to_owned()));
    ScriptedBackend::default()
        .system(SystemQuery::DeviceCount, Ok(Value::number(2)))
        .system(
            SystemQuery::ProcessName(1538),
            name("/opt/torch/.venv/bin/python3"),
        )
        .system(
            SystemQuery::ProcessName(1540),
            name("/opt/torch/.venv/bin/python3 -c \u{1b}[31m/x"),
        )
        .system(
            SystemQuery::ProcessName(1539),
            name("nvidia-cuda-mps-server"),
        )
        .numbers(
            0,
            Query::ComputeProcesses,
            &[1540, 5730 * MIB, -1, -1, 1538, 1732 * MIB, -1, -1],
        )
        .numbers(1, Query::ComputeProcesses, &[1539, 5730 * MIB, -1, -1])
        .numbers(
            0,
            Query::ProcessUtilization(0),
            &[7, 1538, 90, 20, 0, 0, -1, -1, 9, 1538, 98, 22, 0, 3, -1, 0],
        )
        .numbers(
            1,
            Query::ProcessUtilization(0),
            &[8, 1539, 0, 0, 0, 0, 0, 0],
        )
        .numbers(0, Query::ProtectedMemory, &[0, 0, 0])
}

#[test]
fn a_process_stands_as_nvidia_smi_writes_it() {
    let (text, code) = typed("pmon -c 1 -s um", &two());
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
fn a_gpu_without_processes_has_a_row_of_dashes() {
    let driver = ScriptedBackend::default().system(SystemQuery::DeviceCount, Ok(Value::number(1)));
    assert_eq!(
        typed("pmon -c 1 -s m", &driver).0,
        "\
# gpu         pid   type     fb   ccpm    command 
# Idx           #    C/G     MB     MB    name 
    0          -     -      -      -    -              
"
    );
}

#[test]
fn a_process_in_two_lists_is_one() {
    let driver = two()
        .numbers(
            0,
            Query::GraphicsProcesses,
            &[1538, -1, -1, -1, 77, -1, -1, -1],
        )
        .numbers(1, Query::MpsProcesses, &[1539, 10 * MIB, -1, -1]);
    let (text, _) = typed("pmon -c 1 -s m", &driver);
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
fn no_new_sample_is_a_dash() {
    let driver = two().answer(
        gpumon_probe::vendor::nvml::query::Subject::gpu(0),
        Query::ProcessUtilization(0),
        Err(Code::NOT_FOUND),
    );
    let (text, _) = typed("pmon -c 1 -i 0", &driver);
    assert_eq!(
        text.lines().nth(2).unwrap().split_whitespace().nth(3),
        Some("-")
    );
}

#[test]
fn the_seconds_between_rounds_are_ten_at_most() {
    let (text, code) = typed("pmon -d 11 -c 1", &two());
    assert!(text.starts_with(
        "Collection delay/interval should be between 1 second and 10 seconds\n\n    Usage: nvidia-smi pmon"
    ));
    assert_eq!(code, 0);
}

#[test]
fn four_gpus_are_watched_at_most() {
    let driver = ScriptedBackend::default().system(SystemQuery::DeviceCount, Ok(Value::number(8)));
    assert_eq!(typed("pmon -c 1", &driver).0.lines().count(), 6);
}
