//! Test machines with two GPUs. GPU 0 is a different board on each machine, and GPU 1 is always the
//! same H200.

use gpumon_probe::vendor::nvml::query::{CachedAnswers, Query as Q, Subject, SystemQuery, Value};
use serde_json::Value as Json;

use crate::{
    log::tests::boards::{
        add_blackwell, add_divided_h200, add_hopper, add_virtual_gpu_host, add_volta, driver_580,
    },
    tests::scripted::ScriptedBackend,
};

/// The recorded answers of an idle H200 (driver 580.159.04).
const H200: &str = include_str!("../../../probe/src/vendor/nvml/to_model/h200.json");

/// A function that adds a board to a machine.
type AddBoard = fn(ScriptedBackend) -> ScriptedBackend;

/// Returns the name and the backend of each test machine.
pub(super) fn list_machines() -> Vec<(&'static str, ScriptedBackend)> {
    let boards: [(&'static str, AddBoard); 5] = [
        ("h200", add_recorded_h200),
        ("volta", |script| add_volta(add_hopper(script, 0))),
        ("mig", add_divided_h200),
        ("blackwell", add_blackwell),
        ("host", add_virtual_gpu_host),
    ];
    boards
        .map(|(name, board)| (name, add_second_gpu(board(driver_580()))))
        .into()
}

fn add_second_gpu(script: ScriptedBackend) -> ScriptedBackend {
    add_hopper(script, 1)
        .with_quick_answers()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(2)))
        .with_text(1, Q::Uuid, "GPU-99999999-1111-2222-3333-444444444444")
        .with_text(1, Q::Serial, "1650000000009")
}

/// Adds the recorded H200 under load, with NVLinks, a second GPU, processes, and retired pages.
fn add_recorded_h200(script: ScriptedBackend) -> ScriptedBackend {
    let recording: Json = serde_json::from_str(H200).unwrap();
    let answers: CachedAnswers = serde_json::from_value(recording["answers"].clone()).unwrap();
    let script = answers.queries().fold(script, |script, query| {
        script.with_answer(
            Subject::from_gpu(0),
            query,
            answers.get(None, query).unwrap().answer.clone(),
        )
    });
    let numbers: &[(Q, &[i128])] = &[
        (Q::FanSpeed, &[40]),
        (Q::AccountingMode, &[1]),
        (Q::AccountingPids, &[7]),
        (Q::AccountingStats(7), &[50, 20, 1 << 30, 1000, 5, 1]),
        (Q::RetiredPages(0), &[0, 0x1_B0D9]),
        (Q::RetiredPages(1), &[]),
        (Q::RetiredPagesPending, &[0]),
        (Q::NumaNode, &[0]),
        (Q::CpuAffinity, &[0xFFFF]),
        (Q::MemoryAffinity, &[1]),
        (Q::CommonAncestor(1), &[30]),
        (Q::NearestGpus(30), &[1]),
        (
            Q::ComputeProcesses,
            &[1540, 5730 << 20, -1, -1, 1538, 1732 << 20, -1, -1],
        ),
        (Q::ProcessUtilization(0), &[7, 1538, 90, 20, 0, 0, -1, -1]),
        (Q::Field(91, 0), &[2]),
        (Q::NvLinkInfo, &[0]),
    ];
    let script = numbers.iter().fold(script, |script, (query, numbers)| {
        script.with_numbers(0, *query, numbers)
    });
    let script = (0..5).fold(script, |script, index| {
        script.with_numbers(0, Q::P2pStatus(1, index), &[0])
    });
    let script = (0..2).fold(script, |script, link| {
        let fields = [
            (165, 1),
            (164, 26562),
            (138, 285_539_039),
            (139, 0),
            (140, 90),
            (141, 196),
            (167, 1),
            (168, 500),
        ];
        let script = fields.iter().fold(script, |script, (id, number)| {
            script.with_numbers(0, Q::Field(*id, link), &[*number])
        });
        let script = (0..6).fold(script, |script, kind| {
            script.with_numbers(0, Q::NvLinkCapability(link, kind), &[1])
        });
        script
            .with_text(0, Q::NvLinkRemoteBusId(link), "00000000:00:07.0")
            .with_numbers(0, Q::NvLinkState(link), &[1])
    });
    let name = |text: &str| Ok(Value::Text(text.to_owned()));
    script
        .with_system_answer(SystemQuery::NvmlVersion, name("12.580.159.04"))
        .with_system_answer(SystemQuery::NvlinkBandwidthMode, Ok(Value::from_number(0)))
        .with_system_answer(SystemQuery::GpusNearCpu(0), Ok(Value::Numbers(vec![0, 1])))
        .with_system_answer(SystemQuery::ProcessName(1538), name("/usr/bin/python3"))
        .with_system_answer(SystemQuery::ProcessName(1540), name("/usr/bin/python3"))
        .with_gpm_metrics(
            Subject::from_gpu(0),
            &[
                (1, 50.0),
                (2, 40.0),
                (3, 30.0),
                (5, 20.0),
                (10, 10.0),
                (13, 5.0),
            ],
        )
}
