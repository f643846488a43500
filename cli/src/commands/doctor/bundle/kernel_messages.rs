//! What the NVIDIA driver has written to the kernel's log.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
};

use rustix::fs::OFlags;

use super::super::machine::Machine;

/// The kernel gives one record per read, none of which is longer.
const RECORD: usize = 8 << 10;
/// More than any kernel keeps.
const LOG: usize = 64 << 20;
/// The last ones tell.
const MOST_LINES: usize = 300;

/// Its newest messages with their times in microseconds since the start of the kernel, or why there are none.
pub(super) fn read(machine: &Machine) -> Result<Vec<String>, String> {
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(no_wait).open(machine.path("/dev/kmsg"));
    let mut file = file.map_err(|error| format!("/dev/kmsg cannot be read: {error}"))?;
    let (mut log, mut record) = (Vec::new(), [0; RECORD]);
    while log.len() < LOG {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) => log.extend_from_slice(&record[..length]),
            // EPIPE: records were overwritten before they were read. The next read goes on behind the gap.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(format!("/dev/kmsg cannot be read: {error}")),
        }
    }
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().filter_map(message).collect();
    if lines.is_empty() {
        return Err("no message of the NVIDIA driver".to_owned());
    }
    Ok(lines[lines.len().saturating_sub(MOST_LINES)..].to_vec())
}

/// The message of a record `priority,number,microseconds,flags;text`, if the driver wrote it: a priority of 8 or more is
/// a program's.
fn message(line: &str) -> Option<String> {
    let (prefix, text) = line.split_once(';')?;
    let mut fields = prefix.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let time: u64 = fields.nth(1)?.parse().ok()?;
    let is_of_driver = ["NVRM: ", "nvidia", "[drm] [nvidia"].iter().any(|beginning| text.starts_with(beginning));
    (priority < 8 && is_of_driver).then(|| format!("{time} {text}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_the_driver_wrote_is_read() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::below(root.path());
        assert!(read(&machine).unwrap_err().contains("/dev/kmsg"));
        fs::create_dir(root.path().join("dev")).unwrap();
        let log = "6,1,10,-;usb 1-1: secret nvidia\n4,2,20,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n SUBSYSTEM=pci\n\
                   12,3,30,-;NVRM: forged\n6,4,40,-,caller=T1;nvidia-uvm: Loaded\nno record\n";
        fs::write(root.path().join("dev/kmsg"), log).unwrap();
        let lines = ["20 NVRM: Xid (PCI:0000:3b:00): 79, pid=1", "40 nvidia-uvm: Loaded"];
        assert_eq!(read(&machine).unwrap(), lines);
    }
}
