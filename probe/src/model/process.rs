//! A process that holds a GPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, MigInstance, Owner, Reading, reading::absent};

/// One process on one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Process {
    /// Its PID as the driver gives it: in the caller's PID namespace on newer drivers, the host's
    /// on older ones.
    pub pid: u32,
    /// What it does there.
    pub kind: ProcessKind,
    /// Device memory it holds. `unknown` in containers whose driver cannot tell, never 0.
    pub memory_bytes: Reading<u64>,
    /// Share of the last sampling period in which its kernels ran
    /// (`nvmlDeviceGetProcessUtilization`, `smUtil`).
    pub sm_percent: Reading<f64>,
    /// Share of the period in which it read or wrote device memory (`memUtil`).
    pub memory_percent: Reading<f64>,
    /// Encoder use (`encUtil`).
    pub encoder_percent: Reading<f64>,
    /// Decoder use (`decUtil`).
    pub decoder_percent: Reading<f64>,
    /// What a person would call it: the script that an interpreter runs (`train.py`), else the
    /// program's name, from `/proc/PID/comm`. A script's name is part of the command line: those
    /// who may not see that get the name of the program.
    pub name: Reading<String>,
    /// The program's name, from `/proc/PID/comm`, if `name` is that of a script; left out of JSON
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program: Option<String>,
    /// Its command line, arguments separated by spaces; one of more than 1024 bytes is cut there
    /// and ends in `…`. Hidden where it is another user's and the reader is a service.
    pub command: Reading<String>,
    /// The login name of its effective user, or the number where there is no name.
    pub user: Reading<String>,
    /// Host memory it holds, as `ps` has it (`VmRSS` in `/proc/PID/status`): pages that it shares
    /// with others count in full. Read every few seconds.
    #[serde(default = "not_read::<u64>")]
    pub host_memory_bytes: Reading<u64>,
    /// Whether a debugger or another tracer is attached (`TracerPid` in `/proc/PID/status`). Read
    /// every few seconds.
    #[serde(default = "not_read::<bool>")]
    pub traced: Reading<bool>,
    /// When it started. With the PID it identifies a process, since PIDs are used again.
    pub started_ms: Reading<u64>,
    /// The MIG instance it runs in; left out of JSON where it runs on the whole GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub mig: Option<MigInstance>,
    /// Whether it computes through the Multi-Process Service, which mixes several processes'
    /// kernels (`nvmlDeviceGetMPSComputeRunningProcesses`).
    #[serde(default)]
    pub mps: bool,
    /// Whose it is, beyond the user: notebook, job, pod, container, service.
    pub owner: Reading<Owner>,
}

impl Process {
    /// Returns a process with the PID, the kind and the memory that a driver reports.
    pub(crate) fn without_name(pid: u32, kind: ProcessKind, memory_bytes: Reading<u64>) -> Self {
        let (program, mig, mps) = (None, None, false);
        absent!(&Absence::NoAnswer; Self { pid, kind, memory_bytes, program, mig, mps };
            sm_percent, memory_percent, encoder_percent, decoder_percent, name, command, user,
            host_memory_bytes, traced, started_ms, owner)
    }
}

/// Recordings of earlier versions do not have it.
fn not_read<T>() -> Reading<T> {
    Reading::Absent(Absence::NotReadYet)
}

/// What a process does on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// It has a CUDA or `OpenCL` context (nvidia-smi's `C`).
    Compute,
    /// It draws (nvidia-smi's `G`).
    Graphics,
    /// Both (nvidia-smi's `C+G`).
    ComputeAndGraphics,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::examples;

    #[test]
    fn a_process_of_an_earlier_recording_lacks_what_was_added_since() {
        let mut recorded = serde_json::to_value(examples::process(7, 1)).unwrap();
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
