//! The messages of the GPU drivers in the kernel's log.

use gpumon_probe::vendor::{KERNEL_LOG, kernel_messages};

use super::super::machine::Machine;

/// The last ones tell.
const MOST_LINES: usize = 300;

/// Its newest messages with their times in microseconds since the start of the kernel, or why there are none.
pub(super) fn read(machine: &Machine) -> Result<Vec<String>, String> {
    let messages = kernel_messages(&machine.path(KERNEL_LOG));
    let messages = messages.map_err(|error| format!("{KERNEL_LOG} cannot be read: {error}"))?;
    if messages.is_empty() {
        return Err("no message of a GPU driver".to_owned());
    }
    Ok(messages[messages.len().saturating_sub(MOST_LINES)..].to_vec())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_newest_messages_are_read_or_it_is_said_why_not() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::below(root.path());
        assert!(read(&machine).unwrap_err().contains("/dev/kmsg"));
        fs::create_dir(root.path().join("dev")).unwrap();
        let log = |count| {
            (0..count)
                .map(|number| format!("4,1,{number},-;NVRM: x\n"))
                .collect::<Vec<_>>()
                .concat()
        };
        fs::write(root.path().join("dev/kmsg"), log(0)).unwrap();
        assert!(read(&machine).unwrap_err().contains("no message"));
        fs::write(root.path().join("dev/kmsg"), log(301)).unwrap();
        let messages = read(&machine).unwrap();
        assert_eq!(
            (messages.len(), &*messages[0], &*messages[299]),
            (300, "1 NVRM: x", "300 NVRM: x")
        );
    }
}
