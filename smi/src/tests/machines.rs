//! Test machines with two GPUs: GPU 0 is a different board on each machine, GPU 1 is always the
//! same H200.

use gpumon_probe::vendor::nvml::query::{CachedAnswers, Query as Q, Subject, SystemQuery, Value};
use serde_json::Value as Json;

use crate::{
    log::tests::boards::{blackwell, driver, hopper, host, parted, volta},
    tests::scripted::ScriptedBackend,
};

/// Recorded answers of an idle H200 (driver 580.159.04).
const H200: &str = include_str!("../../../probe/src/vendor/nvml/to_model/h200.json");

/// Adds a board to a machine.
type Board = fn(ScriptedBackend) -> ScriptedBackend;

/// Returns all machines with their names.
pub(super) fn all() -> Vec<(&'static str, ScriptedBackend)> {
    let boards: [(&'static str, Board); 5] = [
        ("h200", recorded),
        ("volta", |script| volta(hopper(script, 0))),
        ("mig", parted),
        ("blackwell", blackwell),
        ("host", host),
    ];
    boards
        .map(|(name, board)| (name, beside_another(board(driver()))))
        .into()
}

fn beside_another(script: ScriptedBackend) -> ScriptedBackend {
    hopper(script, 1)
        .quick()
        .system(SystemQuery::DeviceCount, Ok(Value::number(2)))
        .text(1, Q::Uuid, "GPU-99999999-1111-2222-3333-444444444444")
        .text(1, Q::Serial, "1650000000009")
}

/// Returns the recorded machine under load, with NVLinks, a second GPU, processes and retired
/// pages.
fn recorded(script: ScriptedBackend) -> ScriptedBackend {
    let recording: Json = serde_json::from_str(H200).unwrap();
    let answers: CachedAnswers = serde_json::from_value(recording["answers"].clone()).unwrap();
    let script = answers.queries().fold(script, |script, query| {
        script.answer(
            Subject::gpu(0),
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
        script.numbers(0, *query, numbers)
    });
    let script = (0..5).fold(script, |script, index| {
        script.numbers(0, Q::P2pStatus(1, index), &[0])
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
            script.numbers(0, Q::Field(*id, link), &[*number])
        });
        let script = (0..6).fold(script, |script, kind| {
            script.numbers(0, Q::NvLinkCapability(link, kind), &[1])
        });
        script
            .text(0, Q::NvLinkRemoteBusId(link), "00000000:00:07.0")
            .numbers(0, Q::NvLinkState(link), &[1])
    });
    let name = |text: &str| Ok(Value::Text(text.to_owned()));
    script
        .system(SystemQuery::NvmlVersion, name("12.580.159.04"))
        .system(SystemQuery::NvlinkBandwidthMode, Ok(Value::number(0)))
        .system(SystemQuery::GpusNearCpu(0), Ok(Value::Numbers(vec![0, 1])))
        .system(SystemQuery::ProcessName(1538), name("/usr/bin/python3"))
        .system(SystemQuery::ProcessName(1540), name("/usr/bin/python3"))
        .gpm(
            Subject::gpu(0),
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
