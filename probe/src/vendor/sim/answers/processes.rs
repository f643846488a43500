//! The processes of a sample, in the three lists that the driver keeps.

use crate::{
    model::{Absence, GpuSample, Process, ProcessKind, Reading},
    vendor::nvml::query::{Answer, Code, Query, Value},
};

/// One of the driver's lists; `None` where the query is about none.
pub(super) fn list(sample: &GpuSample, query: Query) -> Option<Answer> {
    let belongs = |process: &Process| match query {
        Query::MpsProcesses => process.mps,
        Query::ComputeProcesses => !process.mps && process.kind != ProcessKind::Graphics,
        _ => process.kind != ProcessKind::Compute,
    };
    if !matches!(
        query,
        Query::ComputeProcesses | Query::GraphicsProcesses | Query::MpsProcesses
    ) {
        return None;
    }
    Some(match &sample.processes {
        Reading::Now(processes)
        | Reading::Earlier {
            value: processes, ..
        } => Ok(Value::Numbers(
            processes
                .iter()
                .filter(|process| belongs(process))
                .flat_map(entry)
                .collect(),
        )),
        Reading::Absent(Absence::NoPermission) => Err(Code::NO_PERMISSION),
        Reading::Absent(_) => Err(Code::NOT_SUPPORTED),
    })
}

/// PID, memory, GPU instance, compute instance.
fn entry(process: &Process) -> [i128; 4] {
    let (gi, ci) = process.mig.map_or((-1, -1), |own| {
        (own.gpu_instance.into(), own.compute_instance.into())
    });
    [
        process.pid.into(),
        process
            .memory_bytes
            .value()
            .map_or(-1, |bytes| i128::from(*bytes)),
        gi,
        ci,
    ]
}
