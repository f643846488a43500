//! Explanations of Xids, recommended actions, and a parser for Xids in the kernel log.
//!
//! An Xid is the number of an error that NVIDIA's driver reports about a GPU. The numbers come from
//! NVIDIA's public catalog of Xid errors. If newer catalogs list a number as unused, the table
//! gives its meaning in older drivers.

use self::Cause::{Broken, Fault, Program};
use crate::{
    model::{
        Severity::{self, Critical, Notice, Warning},
        normalize_bus_id,
    },
    vendor::{
        DriverError, ErrorInfo, LoggedError,
        kernel_log::{LogParser, make_printable},
    },
};

/// Returns the explanation of an Xid, or `UNDOCUMENTED_XID` if NVIDIA does not document the code.
pub fn describe_xid(code: u32) -> ErrorInfo {
    XIDS.iter()
        .find(|(codes, _)| codes.contains(&code))
        .map_or(UNDOCUMENTED_XID, |(_, info)| *info)
}

const UNDOCUMENTED_XID: ErrorInfo = ErrorInfo::new(
    Warning,
    "The driver reported an error that NVIDIA does not document.",
    "Check the driver's message in the kernel log. If the error recurs, update the driver or \
     contact the vendor.",
);

enum Cause {
    /// An error that a program caused.
    Program(Severity),
    /// An error of the GPU, the driver, or the machine that does not stop the GPU from working.
    Fault(Severity),
    /// An error that requires a reset of the GPU.
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
            by_program,
            needs_reset,
            ..ErrorInfo::new(severity, meaning, advice)
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

const DEBUG: &str = "Run the program under `compute-sanitizer` or `cuda-gdb` to find the line \
                     that caused the error; if other programs fail in the same way, test the GPU.";
const AGAIN: &str =
    "Start the program again; if the error recurs with other programs, contact the vendor.";
const DISPLAY: &str = "Restart the program that draws on the screen; if the error recurs, update \
                       the driver and check the cable and the screen.";
const LINK: &str = "Check `nvidia-smi nvlink -e` and the GPUs at the other ends. If Xid 154 is \
                    reported, follow its advice; otherwise reset the GPU if NVLink fails.";
const UPDATE: &str = "If the error recurs, update the driver; if that does not help, contact the \
                      vendor.";
const RESET: &str = "Stop the programs on the GPU, then reset it; if the error recurs, update \
                     driver and firmware.";
const DIAGNOSE: &str = "Stop the programs on the GPU, then reset it; if the error recurs, run \
                        NVIDIA's field diagnostics.";
const REPLACE: &str =
    "Stop the programs on the GPU, then reset it; if the error recurs, have the board replaced.";
const RESET_OR_REBOOT: &str = "Stop the programs on the GPU, then reset it or reboot; if the \
                               error recurs, update driver and firmware.";

/// Builds the table of Xids. Each row contains codes that all have the same meaning, and their
/// cause, meaning and advice. For common errors, the row also contains a label of a few words and a
/// clause, both for display in terminals.
macro_rules! xid_table {
    ($(
        [$($code:literal),+] $cause:expr, $meaning:literal, $advice:expr;
        $(=> $short:literal, $long:literal;)?
    )+) => {
        &[$((&[$($code),+], $cause.info($meaning, $advice)$(.with_brief($short, $long))?)),+]
    };
}

static XIDS: &[(&[u32], ErrorInfo)] = xid_table! {
    // These are errors that programs cause.
    [1, 2, 3, 6, 7, 11, 25] Program(Warning), "The GPU received invalid commands.",
        "Start the program again; if the error recurs, suspect the program or the driver, then \
         the PCIe link.";
    [8] Program(Warning), "The GPU stopped processing a program's commands.", AGAIN;
    [13] Program(Warning),
        "A kernel performed an illegal operation, most often an access past the end of an array, \
         and its program was stopped.",
        DEBUG;
        => "illegal access", "a program's kernel performed an illegal operation – debug that \
                              program";
    [14] Program(Notice), "A program injected this error to test how errors are handled.", "Nothing needs to be done.";
    [31] Program(Warning), "A program used an address in GPU memory that it does not own, and was \
                            stopped.", DEBUG;
        => "bad address", "a program used an address that it does not own – debug that program";
    [43] Program(Notice), "A program's work on the GPU was stopped because of an error in the \
                           program; the GPU is healthy.",
        "Check the program's output and the earlier Xids.";
        => "program stopped", "a program's work was stopped because of an error in the program";
    [45] Program(Notice), "The driver removed the work of a program that was stopped or had \
                           failed.",
        "Nothing needs to be done if the program was stopped on purpose; otherwise check the \
         earlier Xids.";
        => "work cleared", "the driver removed the work of a program that had ended";
    [69] Program(Warning), "A program sent an unknown command to the compute or graphics engine.",
        "Check that the program was built for this GPU and driver, and run it under \
         `compute-sanitizer`.";
    [80] Program(Warning), "Commands for the GPU arrived corrupted, according to their checksum.",
        "Start the program again; if the error recurs, suspect the PCIe link or host memory.";
    [106, 107] Program(Notice), "A test message came from the machine's management controller.",
        "Nothing needs to be done.";
    [137] Program(Warning), "A program accessed memory of another GPU over NVLink without \
                             permission.", DEBUG;
        => "bad address", "a program used an address that it does not own – debug that program";
    [141] Program(Warning), "CUDA's fast path, its shortcut to the GPU, failed for a program.",
        "Start the program again; if the error recurs, update the driver.";

    // These are errors of engines other than the multiprocessors: copy, video, JPEG and display.
    [39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135] Program(Warning),
        "A copy engine failed while it moved a program's data.",
        AGAIN;
    [20, 21, 22, 27, 28, 29, 34, 35, 36, 42, 60] Program(Warning), "The video processor failed \
                                                                    during a program's work.",
        AGAIN;
    [47, 65, 73, 142] Program(Warning), "A video encoder failed during a program's work.", AGAIN;
    [68, 83, 84, 88, 89, 96, 97, 98] Program(Warning),
        "A video decoder failed during a program's work, often because the video is damaged.",
        AGAIN;
    [82, 99, 100, 101, 102, 103, 104, 105] Program(Warning),
        "A JPEG decoder failed during a program's work, often because the picture is damaged.",
        AGAIN;
    [86, 139] Program(Warning), "The optical flow engine failed during a program's work.", AGAIN;
    [138, 152, 153] Program(Warning), "The deep learning accelerator failed during a program's \
                                       work.", AGAIN;
    [16, 19, 56, 112, 114, 115, 116, 117, 118] Fault(Warning), "The display engine failed.", DISPLAY;
    [81] Fault(Warning), "The part of the GPU that serves text consoles failed.", DISPLAY;
    [113] Fault(Notice), "A screen's DisplayPort link could not be set up.", "Check the cable and the screen.";
    [78] Fault(Warning), "A virtual GPU could not be started.",
        "Check that the driver versions of host and guest are compatible, and update them.";

    // These are memory errors, and errors in the handling of defective cells.
    [26] Fault(Warning), "Device memory did not answer in time.",
        "Test the GPU's memory; if the error persists, the board is faulty.";
    [48] Broken, "A memory error could not be corrected, and results that depend on it are wrong.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";
    [57] Broken, "The link to device memory could not be set up.",
        "Reboot the machine; if the error recurs, the board is faulty.";
    [58] Broken, "The link to device memory is unstable.",
        "Undo any overclocking and check cooling, then reset the GPU; if the error recurs, the \
         board is faulty.";
    [63] Fault(Notice), "A faulty location in device memory was found, and will be replaced by a \
                         spare one.",
        "Reset the GPU when convenient, so that the spare location is used.";
        => "bad memory row", "a faulty location in memory was found – reset the GPU when \
                              convenient";
    [64] Broken, "A faulty location in device memory was found, but could not be replaced.", REPLACE;
        => "bad memory row", "a faulty location in memory cannot be replaced – have the board \
                              replaced";
    [92] Fault(Warning), "Corrected memory errors are very frequent.",
        "Run NVIDIA's field diagnostics when convenient; the board may fail soon.";
        => "memory errors", "corrected memory errors are very frequent – run field diagnostics";
    [93] Fault(Notice), "The board's InfoROM could not be written, because its write limit was \
                         reached.",
        "Clear the limit with `nvflash --elsessionclear`; if that does not help, contact the \
         vendor.";
    [94] Fault(Critical), "A memory error could not be corrected; it affected only one program, \
                           which was stopped.",
        "Start that program again, and reset the GPU when convenient.";
        => "memory error", "a memory error affected one program – start that program again";
    [95] Broken, "A memory error could not be corrected, and may have affected every program on \
                  the GPU.",
        "Stop all programs on the GPU, because their results may be wrong, and reset it.";
        => "memory error", "a memory error may have affected every program – stop all programs and \
                            reset the GPU";
    [125] Fault(Warning), "The board's InfoROM is damaged.",
        "Contact the vendor; the GPU works, but no longer counts its errors.";
    [140] Broken, "A memory error could not be corrected, and its location could not be taken out \
                   of use.", REPLACE;
        => "bad memory row", "a faulty location in memory cannot be replaced – have the board \
                              replaced";
    [156] Broken, "A faulty part of the GPU was found, and will be taken out of use.",
        "Stop the programs on the GPU, then reset it, so that the part is taken out of use.";
    [157] Fault(Warning), "A faulty part of the GPU was found, but no spare part is left.",
        "Work can continue, but the error may recur; have the board replaced when convenient.";
    [160] Fault(Notice), "A faulty channel of the GPU will be taken out of use.", "Reset the GPU \
                                                                                   when convenient.";
    [161] Fault(Warning), "A faulty channel of the GPU could not be taken out of use.",
        "Reset the GPU when convenient; if the error recurs, have the board replaced.";
    [168] Fault(Warning), "The driver stopped using part of its reserved device memory, because \
     that part has errors.",
        "Enable ECC (`nvidia-smi -e 1`) and reboot, so that faulty rows are replaced.";
    [171] Broken, "An error in device memory could not be corrected.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";
    [172] Broken, "An error in the on-chip memory could not be corrected.", DIAGNOSE;
        => "memory error", "a memory error could not be corrected – reset the GPU";

    // These are errors of connections: PCI Express, NVLink, and the link to a Grace CPU.
    [18] Fault(Warning), "The GPU could not access host memory, because PCIe bus mastering was \
     disabled.",
        "Reboot the machine; if the error recurs, check its firmware settings.";
    [32] Fault(Warning), "Commands for the GPU were damaged on their way over PCIe.",
        "Start the program again; if the error recurs, check seating, risers and the slot.";
    [74] Broken, "An NVLink to another GPU or to a switch has failed.",
        "Check the GPUs at both ends of the link, then reset them; if the error recurs, check \
         bridges and baseboard.";
        => "NVLink failed", "an NVLink has failed – reset the GPUs that it connects";
    [79] Broken, "The GPU fell off the PCIe bus.",
        "Check power, cooling and seating, then reboot; if the error recurs, the board or the \
         slot is faulty.";
        => "fell off the bus", "GPU has fallen off the bus – reboot the machine";
    [108] Fault(Notice), "A request for another GPU's memory over NVLink had no valid address.", LINK;
    [121] Fault(Notice), "Errors on the link to the Grace CPU were corrected.",
        "Nothing needs to be done; a GPU reset at a convenient time sets up the link again.";
    [136] Broken, "An NVLink could not be set up.",
        "Reset the GPU; if the error recurs, check bridges, cables and baseboard.";
    [144, 145, 146, 147, 148, 149] Fault(Warning), "The GPU's NVLink hardware reported an error.", LINK;
        => "NVLink error", "the NVLink hardware reported an error";
    [150] Broken, "The controller of the GPU's NVLinks has failed.",
        "Stop the programs on the GPU, then reset it; if the error recurs, contact the vendor.";
    [155] Fault(Warning), "The NVLink software deactivated an NVLink on purpose.", LINK;
    [159] Fault(Warning), "A request over the link to the Grace CPU failed.",
        "Reset the GPU if a program uses managed memory on it; otherwise check other Xids from the \
         same time.";
    [166, 170] Fault(Warning),
        "An encrypted NVLink was used in a way that confidential computing does not allow.",
        "Set up confidential computing again on all GPUs of the machine; if the error recurs, \
         contact the vendor.";
    [167] Broken, "The machine did not answer the GPU over PCIe in time.",
        "Check the kernel log for PCIe errors, then reboot; if the error recurs, check seating \
         and the slot.";

    // These are errors of the driver, the GPU's firmware, and the power supply.
    [4, 24, 30] Fault(Warning), "Programs on the GPU waited too long for each other.", UPDATE;
    [9, 12, 66, 67, 111] Fault(Warning), "The driver programmed the GPU incorrectly.", UPDATE;
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
        "Switch the machine off and on again, and undo recent hardware changes; if the error \
         recurs, contact the vendor.";
    [119] Broken, "The GPU's system processor (GSP) did not answer the driver in time.", RESET_OR_REBOOT;
        => "GSP hangs", "the GPU's system processor does not answer – reset the GPU";
    [120] Broken, "The GPU's system processor (GSP) has failed.", RESET_OR_REBOOT;
        => "GSP failed", "the GPU's system processor has failed – reset the GPU";
    [122, 123, 124] Fault(Warning), "The board's flash memory could not be read or written.",
        "Contact the vendor if the error recurs; the GPU still computes.";
    [143] Broken, "The GPU could not be initialized.",
        "Reset the GPU or reboot; if the error recurs, update driver and firmware, then contact \
         the vendor.";
    [151] Broken, "The keys of confidential computing could not be renewed.",
        "Restart the virtual machine; if the error recurs, reset the GPU.";
    [154] Fault(Notice), "The recovery action that the driver requests has changed.",
        "Check the earlier Xids, and follow the driver's message.";
        => "see recovery", "the recovery action that the driver requests has changed";
    [158] Broken, "The GPU timed out waiting for one of its own parts.", RESET;
    [162] Fault(Notice), "The hardware that smooths power swings works again.", "Nothing needs to be done.";
    [163] Fault(Notice), "The hardware that smooths power swings has switched itself off.",
        "Check the cooling; if power swings matter for this machine, reload the driver or reset \
         the GPU when convenient.";
    [164] Fault(Notice), "The hardware that smooths power swings will soon be worn out.",
        "Check whether the machine's power supply can handle power swings; if not, plan to \
         replace the board.";
    [165] Fault(Warning), "The hardware that smooths power swings is worn out.",
        "Check whether the machine's power supply can handle power swings; if not, replace the \
         board.";
};

/// A parser for Xids in the kernel log. The log also contains Xids that NVML does not report as
/// events. Each log line contains the driver's own message.
#[derive(Debug)]
pub(super) struct XidLog;

impl LogParser for XidLog {
    fn parse(&mut self, text: &str) -> Vec<LoggedError> {
        parse_xid(text).into_iter().collect()
    }
}

fn parse_xid(text: &str) -> Option<LoggedError> {
    let (gpu, rest) = text.strip_prefix("NVRM: Xid (")?.split_once("):")?;
    // For a MIG device, the bus ID is followed by the instance: `PCI:0000:3b:00 GPU-I:05`.
    let bus_id = gpu.strip_prefix("PCI:").unwrap_or(gpu).split(' ').next()?;
    let (code, message) = rest
        .trim_start()
        .split_once(',')
        .unwrap_or((rest.trim_start(), ""));
    let message = make_printable(message);
    let error = DriverError {
        code: code.parse().ok()?,
        pid: parse_pid(&message),
        message: Some(message).filter(|message| !message.is_empty()),
    };
    Some(LoggedError {
        pci_bus_id: normalize_bus_id(bus_id)?,
        error,
    })
}

/// Returns the PID in a message. The driver writes it first, as `pid=1234` or `pid='<unknown>'`.
/// Later parts of the message are ignored, because a program's name could look like a PID.
fn parse_pid(message: &str) -> Option<u32> {
    let digits = message.strip_prefix("pid=")?;
    digits.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_known_code_is_described_once() {
        let mut times = HashMap::new();
        for code in XIDS.iter().flat_map(|(codes, _)| *codes) {
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
    fn xid_meaning_and_advice_are_short_sentences() {
        for (_, info) in XIDS {
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
    fn xid_that_requires_reset_is_critical() {
        for (_, info) in XIDS {
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
                .all(|code| describe_xid(code).by_program)
        );
        assert!(
            [48, 64, 79, 95, 119, 120, 140]
                .into_iter()
                .all(|code| describe_xid(code).needs_reset)
        );
    }

    #[test]
    fn unknown_code_is_described_as_unknown() {
        assert_eq!(describe_xid(0), UNDOCUMENTED_XID);
        assert_eq!(describe_xid(u32::MAX), UNDOCUMENTED_XID);
        assert_ne!(describe_xid(79), UNDOCUMENTED_XID);
    }
}

#[cfg(test)]
mod xid_log_tests {
    use super::*;
    use crate::vendor::kernel_log::parse_kernel_text;

    fn parse(line: &[u8]) -> Option<LoggedError> {
        parse_xid(&parse_kernel_text(line)?)
    }

    fn parse_fields(line: &str) -> Option<(String, u32, Option<u32>)> {
        parse(line.as_bytes())
            .map(|logged| (logged.pci_bus_id, logged.error.code, logged.error.pid))
    }

    #[test]
    fn all_line_formats_of_driver_are_parsed() {
        let lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has \
                    fallen off the bus.";
        assert_eq!(
            parse_fields(lost),
            Some(("00000000:3B:00.0".into(), 79, None))
        );
        let fault = "NVRM: Xid (PCI:0000:0a:00): 31, pid=1234, name=python3, Ch 00000008, MMU \
                     Fault: ENGINE GRAPHICS";
        assert_eq!(
            parse_fields(fault),
            Some(("00000000:0A:00.0".into(), 31, Some(1234)))
        );
        assert_eq!(
            parse_fields("NVRM: Xid (0000:3b:00): 13, 0001"),
            Some(("00000000:3B:00.0".into(), 13, None))
        );
        assert_eq!(
            parse_fields("NVRM: Xid (PCI:0009:01:00): 154"),
            Some(("00000009:01:00.0".into(), 154, None))
        );
        let mig = "NVRM: Xid (PCI:0000:87:00 GPU-I:05): 43, pid=7, name=a, Ch 1";
        assert_eq!(
            parse_fields(mig),
            Some(("00000000:87:00.0".into(), 43, Some(7)))
        );
        let record = "4,1234,567890,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=9, name=b; c, DBE\n";
        assert_eq!(
            parse_fields(record),
            Some(("00000000:3B:00.0".into(), 48, Some(9)))
        );
        assert_eq!(
            parse(record.as_bytes()).unwrap().error.message.unwrap(),
            "pid=9, name=b; c, DBE"
        );
        assert_eq!(
            parse_fields("3,1,2,-,caller=T1;NVRM: Xid (PCI:0000:3b:00): 8, x")
                .unwrap()
                .1,
            8
        );
    }

    #[test]
    fn lines_without_valid_xid_are_ignored() {
        for line in [
            "",
            "NVRM: Xid",
            "NVRM: Xid (PCI:0000:3b:00)",
            "NVRM: Xid (PCI:0000:3b:00): , pid=1",
            "NVRM: Xid (PCI:0000:3b:00): -1, x",
            "NVRM: Xid (PCI:0000:3b:00): 99999999999, x",
            "NVRM: Xid (PCI:zz:3b:00): 79, x",
            "NVRM: Xid (): 79, x",
            "usb 1-1: Product: NVRM: Xid (PCI:0000:3b:00): 79, x",
            "NVRM: loading NVIDIA UNIX x86_64 Kernel Module; Xid",
            // A program has written this line: its facility is not that of the kernel.
            "12,1234,567890,-;NVRM: Xid (PCI:0000:3b:00): 79, x",
            " SUBSYSTEM=pci",
        ] {
            assert_eq!(parse_fields(line), None, "{line}");
        }
        assert_eq!(parse(b"\xff\xfeNVRM: Xid (PCI:0000:3b:00): 79"), None);
    }

    #[test]
    fn message_is_cut_and_cleaned() {
        let line = format!(
            "NVRM: Xid (PCI:0000:3b:00): 31, name=\x1b[2Jpid=7, pid=8 {}",
            "é".repeat(2000)
        );
        let DriverError { pid, message, .. } = parse(line.as_bytes()).unwrap().error;
        let message = message.unwrap();
        assert_eq!(pid, None);
        assert_eq!(message.chars().count(), 512);
        assert!(message.starts_with("name=[2Jpid=7"), "{message}");
    }
}
