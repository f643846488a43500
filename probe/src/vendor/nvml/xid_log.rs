//! Xids in the kernel log. They include Xids that NVML's events omit, and each comes with the
//! driver's own message.

use crate::{
    model::normalize_bus_id,
    vendor::{
        DriverError, LoggedError,
        kernel_log::{LogParser, make_printable},
    },
};

/// A parser for the Xids that NVIDIA's driver logs.
#[derive(Debug)]
pub(super) struct XidLog;

impl LogParser for XidLog {
    fn parse(&mut self, text: &str) -> Vec<LoggedError> {
        parse(text).into_iter().collect()
    }
}

fn parse(text: &str) -> Option<LoggedError> {
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

/// Returns the PID in a message, which the driver writes first, as `pid=1234` or `pid='<unknown>'`.
/// Later parts of the message are ignored, because a program's name could contain such text.
fn parse_pid(message: &str) -> Option<u32> {
    let digits = message.strip_prefix("pid=")?;
    digits.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::kernel_log::parse_kernel_text;

    fn parse(line: &[u8]) -> Option<LoggedError> {
        super::parse(&parse_kernel_text(line)?)
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
