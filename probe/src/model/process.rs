//! Processes that use a GPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, MigInstance, Owner, Reading, reading::absent};

/// A process that uses a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Process {
    /// The PID reported by the driver. Newer drivers report it in the PID namespace of the caller,
    /// older drivers in the namespace of the host.
    pub pid: u32,
    /// The kind of use: compute, graphics or both.
    pub kind: ProcessKind,
    /// Device memory of the process. In containers, the driver may not be able to report it; the
    /// value is then `unknown`, never 0.
    pub memory_bytes: Reading<u64>,
    /// Share of the last sampling period in which the process's kernels ran
    /// (`nvmlDeviceGetProcessUtilization`, `smUtil`).
    pub sm_percent: Reading<f64>,
    /// Share of the last sampling period in which the process read or wrote device memory
    /// (`memUtil`).
    pub memory_percent: Reading<f64>,
    /// Utilization of the video encoder by the process (`encUtil`).
    pub encoder_percent: Reading<f64>,
    /// Utilization of the video decoder by the process (`decUtil`).
    pub decoder_percent: Reading<f64>,
    /// The script that an interpreter runs, such as `train.py`, otherwise the program's name from
    /// `/proc/PID/comm`. A script's name is part of the command line, so users who may not see the
    /// command line receive the program's name.
    pub name: Reading<String>,
    /// The program's name from `/proc/PID/comm`, if `name` is a script's name. Omitted otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program: Option<String>,
    /// The command line, with arguments separated by spaces. A command line of more than 1024 bytes
    /// is truncated and ends in `…`. Hidden for other users' processes if gpumon runs as a service.
    pub command: Reading<String>,
    /// The login name of the process's effective user, or the numeric user ID if there is no name.
    pub user: Reading<String>,
    /// Host memory of the process, as in `ps` (`VmRSS` in `/proc/PID/status`), including pages that
    /// are shared with other processes. Read every few seconds.
    #[serde(default = "not_read::<u64>")]
    pub host_memory_bytes: Reading<u64>,
    /// Whether a debugger or another tracer is attached to the process (`TracerPid` in
    /// `/proc/PID/status`). Read every few seconds.
    #[serde(default = "not_read::<bool>")]
    pub traced: Reading<bool>,
    /// The start time of the process. PID and start time together identify a process, because PIDs
    /// are reused.
    pub started_ms: Reading<u64>,
    /// The MIG instance that the process uses. Omitted for processes that use the whole GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub mig: Option<MigInstance>,
    /// Whether the process computes through the Multi-Process Service, which mixes the kernels of
    /// several processes (`nvmlDeviceGetMPSComputeRunningProcesses`).
    #[serde(default)]
    pub mps: bool,
    /// The owners of the process in addition to its user: notebook, job, pod, container and
    /// service.
    pub owner: Reading<Owner>,
}

impl Process {
    /// Returns a process with only the PID, kind and memory that a driver reports. All other
    /// readings are absent.
    pub(crate) fn new_unnamed(pid: u32, kind: ProcessKind, memory_bytes: Reading<u64>) -> Self {
        let (program, mig, mps) = (None, None, false);
        absent!(&Absence::NoAnswer; Self { pid, kind, memory_bytes, program, mig, mps };
            sm_percent, memory_percent, encoder_percent, decoder_percent, name, command, user,
            host_memory_bytes, traced, started_ms, owner)
    }
}

/// Returns the default for readings that are missing from recordings of earlier versions.
fn not_read<T>() -> Reading<T> {
    Reading::Absent(Absence::NotReadYet)
}

/// The kind of GPU use of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// The process has a CUDA or OpenCL context (nvidia-smi's `C`).
    Compute,
    /// The process uses graphics (nvidia-smi's `G`).
    Graphics,
    /// The process uses both compute and graphics (nvidia-smi's `C+G`).
    ComputeAndGraphics,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::examples;

    #[test]
    fn process_of_old_recording_lacks_newer_fields() {
        let mut recorded = serde_json::to_value(examples::make_process(7, 1)).unwrap();
        for added in ["host_memory_bytes", "traced"] {
            recorded.as_object_mut().unwrap().remove(added).unwrap();
        }
        let process: Process = serde_json::from_value(recorded).unwrap();
        assert_eq!(
            process.host_memory_bytes,
            Reading::Absent(Absence::NotReadYet)
        );
        assert_eq!(process.traced, Reading::Absent(Absence::NotReadYet));
    }
}
