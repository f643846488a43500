//! Explanations of Xids, and the recommended actions.
//!
//! An Xid is the number of an error that NVIDIA's driver reports about a GPU. The numbers are from
//! NVIDIA's public catalog of Xid errors. Numbers that newer catalogs list as unused have the
//! meaning that older drivers gave them.

use self::Cause::{Broken, Fault, Program};
use crate::{
    model::Severity::{self, Critical, Notice, Warning},
    vendor::ErrorInfo,
};

/// Returns the explanation of an Xid. For codes that NVIDIA does not document, this is `UNKNOWN`.
pub fn describe(code: u32) -> ErrorInfo {
    TABLE
        .iter()
        .find(|(codes, _)| codes.contains(&code))
        .map_or(UNKNOWN, |(_, info)| *info)
}

const UNKNOWN: ErrorInfo = ErrorInfo {
    name: "",
    meaning: "The driver reported an error that NVIDIA does not document.",
    advice: "Check the driver's message in the kernel log. If it recurs, update the driver or contact the vendor.",
    severity: Warning,
    by_program: false,
    needs_reset: false,
    brief: ["", ""],
};

enum Cause {
    /// An error that a program caused.
    Program(Severity),
    /// An error of the GPU, the driver or the machine, after which work can continue.
    Fault(Severity),
    /// An error after which the GPU must be reset.
    Broken,
}

impl Cause {
    const fn info(self, meaning: &'static str, advice: &'static str) -> ErrorInfo {
        let (severity, by_program, needs_reset) = match self {
            Program(severity) => (severity, true, false),
            Fault(severity) => (severity, false, false),
            Broken => (Critical, false, true),
        };
        ErrorInfo {
            name: "",
            meaning,
            advice,
            severity,
            by_program,
            needs_reset,
            brief: ["", ""],
        }
    }
}

impl ErrorInfo {
    const fn with_brief(self, short: &'static str, long: &'static str) -> Self {
        Self {
            brief: [short, long],
            ..self
        }
    }
}

const DEBUG: &str = "Run the program under `compute-sanitizer` or `cuda-gdb` to find the line that did it; if other \
                     programs fail alike, test the GPU.";
const AGAIN: &str =
    "Start the program again; if it comes back with other programs too, ask the vendor.";
const DISPLAY: &str = "Restart what draws on the screen; if it comes back, update the driver and check cable and screen.";
const LINK: &str = "See `nvidia-smi nvlink -e` and the GPUs at the other ends; follow an Xid 154 beside it, else reset \
                    the GPU if work over NVLink fails.";
const UPDATE: &str = "If it comes back, update the driver; if it stays, ask the vendor.";
const RESET: &str =
    "End what runs there, then reset the GPU; if it comes back, update driver and firmware.";
const DIAGNOSE: &str =
    "End what runs there, then reset the GPU; if it comes back, run NVIDIA's field diagnostics.";
const REPLACE: &str =
    "End what runs there, then reset the GPU; if it comes back, have the board replaced.";
const RESET_OR_REBOOT: &str = "End what runs there, then reset the GPU or reboot; if it comes back, update driver and firmware.";

/// Builds the table. Each row has the codes with the same meaning, their cause, the meaning and the
/// advice. Rows of common errors also have a label of a few words and a clause, both for terminals.
macro_rules! table {
    ($(
        [$($code:literal),+] $cause:expr, $meaning:literal, $advice:expr;
        $(=> $short:literal, $long:literal;)?
    )+) => {
        &[$((&[$($code),+], $cause.info($meaning, $advice)$(.with_brief($short, $long))?)),+]
    };
}

static TABLE: &[(&[u32], ErrorInfo)] = table! {
    // Errors that programs cause.
    [1, 2, 3, 6, 7, 11, 25] Program(Warning), "The GPU was sent commands that make no sense.",
        "Start the program again; if it comes back, suspect the program or the driver, then the PCIe link.";
    [8] Program(Warning), "The GPU stopped working on a program's commands.", AGAIN;
    [13] Program(Warning),
        "A kernel did something illegal, most often an access past the end of an array, and its program was ended.",
        DEBUG;
        => "illegal access", "a program's kernel did something illegal – debug that program";
    [14] Program(Notice), "A program injected this error to test how errors are handled.", "Nothing needs to be done.";
    [31] Program(Warning), "A program used an address in GPU memory that it does not own, and was ended.", DEBUG;
        => "bad address", "a program used an address that it does not own – debug that program";
    [43] Program(Notice), "A program's work on the GPU was stopped because of an error of its own; the GPU is well.",
        "Look at the program's own output and at the Xids before this one.";
        => "program stopped", "a program's work was stopped for an error of its own";
    [45] Program(Notice), "The driver cleared away the work of a program that was ended or had failed.",
        "Nothing needs to be done if the program was stopped on purpose; else look at the Xids before this one.";
        => "work cleared", "the work of a program that ended was cleared away";
    [69] Program(Warning), "A program gave the compute or graphics engine a command that it does not know.",
        "Check that the program was built for this GPU and driver, and run it under `compute-sanitizer`.";
    [80] Program(Warning), "Commands for the GPU arrived corrupted, as their checksum tells.",
        "Start the program again; if it comes back, suspect the PCIe link or host memory.";
    [106, 107] Program(Notice), "A test message came from the machine's management controller.",
        "Nothing needs to be done.";
    [137] Program(Warning), "A program reached over NVLink for memory of another GPU that it may not use.", DEBUG;
        => "bad address", "a program used an address that it does not own – debug that program";
    [141] Program(Warning), "The short way from CUDA to the GPU failed for a program.",
        "Start the program again; if it comes back, update the driver.";

    // Errors of other engines than the multiprocessors: copy, video, JPEG and display.
    [39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135] Program(Warning),
        "A copy engine failed while it moved a program's data.",
        AGAIN;
    [20, 21, 22, 27, 28, 29, 34, 35, 36, 42, 60] Program(Warning), "The video processor failed at a program's work.",
        AGAIN;
    [47, 65, 73, 142] Program(Warning), "A video encoder failed at a program's work.", AGAIN;
    [68, 83, 84, 88, 89, 96, 97, 98] Program(Warning),
        "A video decoder failed at a program's work, often because the video is damaged.",
        AGAIN;
    [82, 99, 100, 101, 102, 103, 104, 105] Program(Warning),
        "A JPEG decoder failed at a program's work, often because the picture is damaged.",
        AGAIN;
    [86, 139] Program(Warning), "The optical flow engine failed at a program's work.", AGAIN;
    [138, 152, 153] Program(Warning), "The deep learning accelerator failed at a program's work.", AGAIN;
    [16, 19, 56, 112, 114, 115, 116, 117, 118] Fault(Warning), "The display engine failed.", DISPLAY;
    [81] Fault(Warning), "The part of the GPU that serves text consoles failed.", DISPLAY;
    [113] Fault(Notice), "A screen's DisplayPort link could not be set up.", "Check the cable and the screen.";
    [78] Fault(Warning), "A virtual GPU could not be started.",
        "Check that the driver versions of host and guest fit each other, and update them.";

    // Errors of the memory, and the handling of defective cells.
    [26] Fault(Warning), "Device memory did not answer in time.",
        "Test the GPU's memory; if the error stays, the board is faulty.";
    [48] Broken, "A memory error could not be corrected, and what was computed with it is wrong.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";
    [57] Broken, "The link to device memory could not be set up.",
        "Reboot the machine; if it comes back, the board is faulty.";
    [58] Broken, "The link to device memory is unstable.",
        "Undo any overclocking and check cooling, then reset the GPU; if it comes back, the board is faulty.";
    [63] Fault(Notice), "A bad place in device memory was found, and a spare one will stand in for it.",
        "Reset the GPU when it suits, so that the spare one is used.";
        => "bad memory row", "a bad place in memory was found – reset the GPU when it suits";
    [64] Broken, "A bad place in device memory was found, and could not be replaced.", REPLACE;
        => "bad memory row", "a bad place in memory cannot be replaced – have the board replaced";
    [92] Fault(Warning), "Corrected memory errors come very often.",
        "Run NVIDIA's field diagnostics when it suits; the board may fail before long.";
        => "memory errors", "corrected memory errors come very often – run field diagnostics";
    [93] Fault(Notice), "The board's own record could not be written, since its limit of writes was reached.",
        "Clear the limit with `nvflash --elsessionclear`; if that does not help, ask the vendor.";
    [94] Fault(Critical), "A memory error could not be corrected; it hit one program, which was ended, and no other.",
        "Start that program again, and reset the GPU when it suits.";
        => "memory error", "a memory error hit one program – start that program again";
    [95] Broken, "A memory error could not be corrected, and may have reached every program on the GPU.",
        "End all programs on the GPU, since their results may be wrong, and reset it.";
        => "memory error", "a memory error may have hit every program – end them and reset the GPU";
    [125] Fault(Warning), "The board's own record (InfoROM) is damaged.",
        "Ask the vendor; the GPU computes, but no longer keeps count of its errors.";
    [140] Broken, "A memory error could not be corrected, nor its place be taken out of use.", REPLACE;
        => "bad memory row", "a bad place in memory cannot be replaced – have the board replaced";
    [156] Broken, "A faulty part of the GPU was found, and will be taken out of use.",
        "End what runs there, then reset the GPU, so that the part is left out.";
    [157] Fault(Warning), "A faulty part of the GPU was found, and there is no spare one left.",
        "Work may go on, but the error may come back; have the board replaced when it suits.";
    [160] Fault(Notice), "A faulty channel of the GPU will be taken out of use.", "Reset the GPU when it suits.";
    [161] Fault(Warning), "A faulty channel of the GPU could not be taken out of use.",
        "Reset the GPU when it suits; if it comes back, have the board replaced.";
    [168] Fault(Warning), "The driver gave up a part of device memory that it keeps for itself, since it has errors.",
        "Turn error correction on (`nvidia-smi -e 1`) and reboot, so that bad rows are replaced.";
    [171] Broken, "An error in device memory could not be corrected.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";
    [172] Broken, "An error in the memory on the chip could not be corrected.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";

    // Errors of connections: PCI Express, NVLink and the link to a Grace CPU.
    [18] Fault(Warning), "The GPU was forbidden to read host memory by itself.",
        "Reboot the machine; if it comes back, check its firmware settings.";
    [32] Fault(Warning), "Commands for the GPU were damaged on their way over PCIe.",
        "Start the program again; if it comes back, check seating, risers and the slot.";
    [74] Broken, "An NVLink to another GPU or to a switch has failed.",
        "Look at the GPU at the other end too, then reset the GPUs; if it comes back, check bridges and baseboard.";
        => "NVLink failed", "an NVLink has failed – reset the GPUs that it joins";
    [79] Broken, "The GPU fell off the PCIe bus.",
        "Check power, heat and seating, then reboot; if it comes back, the board or the slot is faulty.";
        => "fell off the bus", "GPU has fallen off the bus – reboot the machine";
    [108] Fault(Notice), "A request for another GPU's memory over NVLink had no valid address.", LINK;
    [121] Fault(Notice), "Errors on the link to the Grace CPU were corrected.",
        "Nothing needs to be done; a reset of the GPU, when it suits, sets the link up anew.";
    [136] Broken, "An NVLink could not be set up.",
        "Reset the GPU; if it comes back, check bridges, cables and baseboard.";
    [144, 145, 146, 147, 148, 149] Fault(Warning), "The GPU's NVLink hardware reported an error.", LINK;
        => "NVLink error", "the NVLink hardware reported an error";
    [150] Broken, "The controller of the GPU's NVLinks has failed.",
        "End what runs there, then reset the GPU; if it comes back, ask the vendor.";
    [155] Fault(Warning), "An NVLink was taken down on purpose, as its software asked for.", LINK;
    [159] Fault(Warning), "A request over the link to the Grace CPU failed.",
        "Reset the GPU if a program uses managed memory there; else look at the Xids beside this one.";
    [166, 170] Fault(Warning),
        "An NVLink that should be encrypted was used wrongly, which confidential computing does not allow.",
        "Set up confidential computing anew on all GPUs of the machine; if it comes back, ask the vendor.";
    [167] Broken, "The machine did not answer the GPU over PCIe in time.",
        "Look for PCIe errors in the kernel's log, then reboot; if it comes back, check seating and the slot.";

    // Errors of the driver, the GPU's firmware and the power supply.
    [4, 24, 30] Fault(Warning), "Programs that waited for each other on the GPU waited too long.", UPDATE;
    [9, 12, 66, 67, 111] Fault(Warning), "The driver used the GPU wrongly.", UPDATE;
    [37, 38] Fault(Warning), "The firmware that switches between programs reported an error.", UPDATE;
    [44] Fault(Warning), "The GPU failed while it switched between programs.", UPDATE;
    [46] Broken, "The GPU stopped working.", RESET;
    [54] Fault(Critical), "A power cable of the board is not connected.",
        "Shut the machine down and plug in every power connector of the board.";
        => "no power cable", "a power cable of the board is not connected – plug it in";
    [33, 59, 61] Fault(Warning), "A microcontroller of the GPU reported an error.", UPDATE;
    [62, 169] Broken, "A microcontroller of the GPU has stopped.", RESET;
        => "chip stopped", "a microcontroller of the GPU has stopped – reset the GPU";
    [109] Broken, "The GPU did not switch to another program in time.", RESET;
        => "switch hangs", "the GPU did not switch to another program in time – reset the GPU";
    [110] Broken, "The GPU's security hardware found a fault.",
        "Switch the machine off and on again, undoing recent changes of hardware; if it comes back, ask the vendor.";
    [119] Broken, "The GPU's system processor (GSP) did not answer the driver in time.", RESET_OR_REBOOT;
        => "GSP hangs", "the GPU's system processor does not answer – reset the GPU";
    [120] Broken, "The GPU's system processor (GSP) has failed.", RESET_OR_REBOOT;
        => "GSP failed", "the GPU's system processor has failed – reset the GPU";
    [122, 123, 124] Fault(Warning), "The board's flash memory could not be read or written.",
        "Ask the vendor if it comes back; the GPU computes all the same.";
    [143] Broken, "The GPU could not be started.",
        "Reset the GPU or reboot; if it comes back, update driver and firmware, then ask the vendor.";
    [151] Broken, "The keys of confidential computing could not be renewed.",
        "Restart the virtual machine; if it comes back, reset the GPU.";
    [154] Fault(Notice), "What the driver asks for before the GPU is used again has changed.",
        "Look at the Xids before this one, and do what the driver's message asks for.";
        => "see recovery", "what the driver asks for before the GPU is used again has changed";
    [158] Broken, "The GPU gave up waiting for a part of itself.", RESET;
    [162] Fault(Notice), "The hardware that smooths swings of power works again.", "Nothing needs to be done.";
    [163] Fault(Notice), "The hardware that smooths swings of power has switched itself off.",
        "Check cooling; reload the driver or reset the GPU when it suits, if swings of power matter here.";
    [164] Fault(Notice), "The hardware that smooths swings of power will soon be worn out.",
        "Find out whether the machine's power supply bears the swings; if not, plan to replace the board.";
    [165] Fault(Warning), "The hardware that smooths swings of power is worn out.",
        "Find out whether the machine's power supply bears the swings; if not, replace the board.";
};

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_code_up_to_172_that_has_a_meaning_is_described_once() {
        let mut times = HashMap::new();
        for code in TABLE.iter().flat_map(|(codes, _)| *codes) {
            *times.entry(*code).or_insert(0) += 1;
        }
        assert!(times.values().all(|times| *times == 1), "{times:?}");
        // NVIDIA has reserved these codes without giving them a meaning.
        let unused = [5, 10, 15, 17, 23, 49, 50, 51, 52, 53, 55, 87, 90, 91];
        for code in 1..=172 {
            assert_eq!(times.contains_key(&code), !unused.contains(&code), "{code}");
        }
    }

    #[test]
    fn both_sentences_are_whole_and_short() {
        for (_, info) in TABLE {
            for sentence in [info.meaning, info.advice] {
                assert!(
                    sentence.ends_with('.') && sentence.starts_with(char::is_uppercase),
                    "{sentence}"
                );
                assert!(
                    (20..=220).contains(&sentence.len()) && !sentence.contains("  "),
                    "{sentence}"
                );
            }
        }
    }

    #[test]
    fn a_program_s_mistake_is_never_critical_and_what_needs_a_reset_always_is() {
        for (_, info) in TABLE {
            assert!(
                !info.by_program || (info.severity < Severity::Critical && !info.needs_reset),
                "{info:?}"
            );
            assert!(
                !info.needs_reset || info.severity == Severity::Critical,
                "{info:?}"
            );
        }
        assert!(
            [13, 31, 43, 45, 69]
                .into_iter()
                .all(|code| describe(code).by_program)
        );
        assert!(
            [48, 64, 79, 95, 119, 120, 140]
                .into_iter()
                .all(|code| describe(code).needs_reset)
        );
    }

    #[test]
    fn an_unknown_code_is_said_to_be_unknown() {
        assert_eq!(describe(0), UNKNOWN);
        assert_eq!(describe(u32::MAX), UNKNOWN);
        assert_ne!(describe(79), UNKNOWN);
    }
}
