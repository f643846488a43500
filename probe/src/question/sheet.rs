//! What a collector asks beside the model's readings, so that whoever asks its server need not ask the driver.

use serde::{Deserialize, Serialize};

use super::{Answer, Question};

/// Answers about one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// NVML's index.
    pub index: u32,
    /// When they were asked.
    pub at_ms: u64,
    /// Each question once.
    pub answers: Vec<(Question, Answer)>,
}

impl Sheet {
    /// Takes in newer answers, which replace the older ones to the same questions.
    pub fn update(&mut self, newer: Self) {
        self.at_ms = newer.at_ms;
        self.answers.retain(|(question, _)| !newer.answers.iter().any(|(other, _)| other == question));
        self.answers.extend(newer.answers);
    }
}

/// `NVML_POWER_SCOPE_GPU`, `NVML_POWER_SCOPE_MODULE`, `NVML_POWER_SCOPE_MEMORY`.
const SCOPES: [u32; 3] = [0, 1, 2];

/// What never changes while the driver is loaded, or hardly ever: who the board is, how it was set up, what it lacks.
pub fn steady() -> Vec<Question> {
    use Question as Q;
    let mut questions = vec![
        Q::PciInfo,
        Q::Brand,
        Q::Architecture,
        Q::MultiGpuBoard,
        Q::BoardId,
        Q::ModuleId,
        Q::Pdi,
        Q::Hostname,
        Q::PlatformInfo,
        Q::InforomImageVersion,
        Q::InforomIsValid,
        Q::LastBbxFlush,
        Q::GspFirmwareVersion,
        Q::GspFirmwareMode,
        Q::AddressingMode,
        Q::DramEncryptionMode,
        Q::GpuOperationMode,
        Q::DriverModel,
        Q::AccountingBufferSize,
        Q::VirtualizationMode,
        Q::HostVgpuMode,
        Q::VgpuHeterogeneousMode,
        Q::Capabilities,
        Q::AutoBoost,
        Q::SupportedThrottleReasons,
        Q::PowerManagementMode,
        Q::CustomerBoostClock(0),
        Q::GpuMaxPcieGeneration,
        Q::BridgeChips,
        Q::MaxMigDevices,
        Q::NumaNode,
        Q::SupportedMemoryClocks,
    ];
    questions.extend((0..3).map(Q::InforomVersion));
    questions.extend([0, 1, 2, 9, 10, 11].map(Q::VgpuCapability));
    questions.extend((0..8).map(Q::TemperatureThreshold));
    questions.extend([0, 2].map(Q::DefaultApplicationsClock));
    // Thresholds by margin, PCIe atomics.
    questions.extend([193, 194, 195, 196, 228, 229].map(|field| Q::Field(field, 0)));
    // Power limits of the GPU and its module.
    questions.extend(SCOPES[..2].iter().flat_map(|scope| (187..=192).map(|field| Q::Field(field, *scope))));
    // Power smoothing; 5 is the profile in force.
    questions.extend(
        [0, 5].into_iter().flat_map(|scope| (251..=268).chain(275..=288).map(move |field| Q::Field(field, scope))),
    );
    questions
}

/// What these answers raise: the clocks that go with each memory clock.
pub fn raised_by(answers: &[(Question, Answer)]) -> Vec<Question> {
    let clocks = answers.iter().find(|(question, _)| *question == Question::SupportedMemoryClocks);
    let Some((_, Ok(clocks))) = clocks else { return Vec::new() };
    clocks.numbers().iter().filter_map(|mhz| u32::try_from(*mhz).ok()).map(Question::SupportedGraphicsClocks).collect()
}

/// What changes, and has no place in the model.
pub fn changing() -> Vec<Question> {
    use Question as Q;
    let mut questions = vec![
        Q::DisplayMode,
        Q::EncoderStats,
        Q::FbcStats,
        Q::ProtectedMemory,
        Q::SramEccErrors,
        Q::RepairStatus,
        Q::UnrepairableMemory,
        Q::AccountingPids,
        Q::RetiredPages(0),
        Q::RetiredPages(1),
        Q::RetiredPagesPending,
        Q::RemappedRowsV2,
        Q::FabricInfo,
        Q::WorkloadPowerProfiles,
        Q::MigDevices,
    ];
    // Times of throttling, PCIe replays' rollovers.
    questions.extend([74, 76, 95, 269, 270, 271].map(|field| Q::Field(field, 0)));
    // Average and instantaneous power of the module and the memory.
    questions.extend(SCOPES[1..].iter().flat_map(|scope| [Q::Field(185, *scope), Q::Field(186, *scope)]));
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Code, Value};

    #[test]
    fn newer_answers_replace_older_ones() {
        let sheet = |at_ms, answers| Sheet { index: 0, at_ms, answers };
        let mut own = sheet(1, vec![(Question::Brand, Ok(Value::number(14))), (Question::EncoderStats, Err(Code(3)))]);
        own.update(sheet(2, vec![(Question::EncoderStats, Ok(Value::Numbers(vec![1, 30, 900])))]));
        let encoder = (Question::EncoderStats, Ok(Value::Numbers(vec![1, 30, 900])));
        assert_eq!(own, sheet(2, vec![(Question::Brand, Ok(Value::number(14))), encoder]));
    }

    #[test]
    fn no_question_is_asked_twice() {
        let mut all = [steady(), changing()].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
