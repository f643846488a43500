//! Device memory: error correction, rows and pages taken out of use, and what the driver asks for.

use gpumon_probe::model::{GpuDetails, RecoveryAction};

use super::{driver::Answer, finding::Finding, gpus::name};

const RESET: &str = "`gpumon pause`, then `nvidia-smi --gpu-reset`, when no work runs on it";

pub(super) fn check(answer: &Answer) -> Vec<Finding> {
    answer
        .well()
        .filter_map(|(_, details)| details)
        .flat_map(of_one)
        .collect()
}

fn of_one(details: &GpuDetails) -> Vec<Finding> {
    let check = || name(details.index);
    let mut findings = Vec::new();
    if let Some(ecc) = details.modes.ecc.value() {
        if !ecc.current {
            findings.push(Finding::note(
                check(),
                "ECC is off: memory errors go unnoticed",
            ));
        }
        if ecc.current != ecc.pending {
            let text = "ECC mode change pending until the GPU is reset";
            findings.push(Finding::warning(check(), text, RESET));
        }
    }
    if let Some(count @ 1..) = details.ecc.volatile.uncorrected_total.value() {
        let text = format!(
            "{count} memory errors that could not be corrected since the driver was loaded"
        );
        findings.push(Finding::warning(check(), text, RESET));
    } else if let Some(count @ 1..) = details.ecc.aggregate.uncorrected_total.value() {
        let text = format!(
            "{count} memory errors that could not be corrected in its life, none since the last start"
        );
        findings.push(Finding::note(check(), text));
    }
    if let Some(rows) = details.remapped_rows.value() {
        if rows.failed {
            let text = "row remapping failed: no spare memory rows are left";
            findings.push(Finding::problem(check(), text, "have the board replaced"));
        }
        if rows.pending {
            findings.push(Finding::warning(
                check(),
                "row remapping pending for a faulty memory row",
                RESET,
            ));
        }
    }
    if details
        .retired_pages
        .value()
        .is_some_and(|pages| pages.pending)
    {
        findings.push(Finding::warning(
            check(),
            "retirement of faulty memory pages pending",
            RESET,
        ));
    }
    findings.extend(recovery(details));
    findings
}

fn recovery(details: &GpuDetails) -> Option<Finding> {
    let cure = match details.recovery_action.value()? {
        RecoveryAction::None => return None,
        RecoveryAction::GpuReset => RESET,
        RecoveryAction::NodeReboot => "reboot the machine",
        RecoveryAction::DrainP2p => {
            "stop the programs that use peer-to-peer transfers between GPUs, and start no new ones"
        }
        RecoveryAction::DrainAndReset => {
            "let what runs on it end, start nothing new, then reset it: `gpumon pause`, \
                                          `nvidia-smi --gpu-reset`"
        }
    };
    Some(Finding::problem(
        name(details.index),
        "the driver asks for a recovery before the GPU is used again",
        cure,
    ))
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Mode, Reading, RemappedRows};

    use super::{super::finding::Verdict, *};

    fn verdicts(change: impl FnOnce(&mut GpuDetails)) -> Vec<Verdict> {
        let mut details = GpuDetails::absent(3, None, 0, &Absence::NotSupported);
        change(&mut details);
        of_one(&details)
            .into_iter()
            .map(|finding| finding.verdict)
            .collect()
    }

    fn rows(pending: bool, failed: bool) -> Reading<RemappedRows> {
        Reading::Now(RemappedRows {
            correctable: 1,
            uncorrectable: 0,
            pending,
            failed,
            spare: None,
        })
    }

    #[test]
    fn what_cannot_be_read_is_no_finding_and_what_is_broken_is_one_each() {
        assert_eq!(verdicts(|_| {}), []);
        assert_eq!(
            verdicts(|it| it.remapped_rows = rows(false, false)),
            [],
            "a replaced row is healed"
        );
        assert_eq!(
            verdicts(|it| it.remapped_rows = rows(true, false)),
            [Verdict::Warning]
        );
        assert_eq!(
            verdicts(|it| it.remapped_rows = rows(false, true)),
            [Verdict::Problem]
        );
        assert_eq!(
            verdicts(|it| it.modes.ecc = Reading::Now(Mode {
                current: true,
                pending: true
            })),
            []
        );
        assert_eq!(
            verdicts(|it| it.modes.ecc = Reading::Now(Mode {
                current: true,
                pending: false
            })),
            [Verdict::Warning]
        );
        assert_eq!(
            verdicts(|it| it.ecc.volatile.uncorrected_total = Reading::Now(0)),
            []
        );
        assert_eq!(
            verdicts(|it| it.ecc.volatile.uncorrected_total = Reading::Now(1)),
            [Verdict::Warning]
        );
        assert_eq!(
            verdicts(|it| it.ecc.aggregate.uncorrected_total = Reading::Now(1)),
            [Verdict::Note]
        );
        assert_eq!(
            verdicts(|it| it.recovery_action = Reading::Now(RecoveryAction::None)),
            []
        );
        assert_eq!(
            verdicts(|it| it.recovery_action = Reading::Now(RecoveryAction::GpuReset)),
            [Verdict::Problem]
        );
    }
}
