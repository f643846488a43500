use std::{
    io::Write,
    path::PathBuf,
    process::Command,
    sync::mpsc::{Receiver, channel},
};

use super::*;
use crate::{
    model::normalize_bus_id,
    vendor::{DriverError, KERNEL_LOG},
};

const LOST: &str = "4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU \
                    has fallen off the bus.\n";
const FAULT: &str = "4,3,4,-;NVRM: Xid (PCI:0000:0a:00): 31, pid=1234, name=python3, MMU Fault\n";

/// A simple log parser for these tests, which finds Xid messages.
struct XidParser;

impl LogParser for XidParser {
    fn parse(&mut self, text: &str) -> Vec<LoggedError> {
        let parse = || {
            let (bus_id, rest) = text.strip_prefix("NVRM: Xid (PCI:")?.split_once("): ")?;
            let code = rest.split(',').next()?.parse().ok()?;
            let error = DriverError {
                code,
                pid: None,
                message: None,
            };
            Some(LoggedError {
                pci_bus_id: normalize_bus_id(bus_id)?,
                error,
            })
        };
        parse().into_iter().collect()
    }
}

/// A temporary folder that is removed at the end of the test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("gpumon-kmsg-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn create_pipe(&self) -> PathBuf {
        let path = self.0.join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens the log and returns a channel that receives its future errors.
fn follow(path: &Path) -> Receiver<LoggedError> {
    let mut log = KernelLog::open(path, XidParser).unwrap();
    let (sender, receiver) = channel();
    thread::spawn(move || while log.wait().is_ok_and(|xid| sender.send(xid).is_ok()) {});
    receiver
}

fn receive_next_code(receiver: &Receiver<LoggedError>) -> Option<u32> {
    receiver
        .recv_timeout(Duration::from_mins(1))
        .ok()
        .map(|logged| logged.error.code)
}

#[test]
fn file_is_read_from_its_end() {
    let folder = TestFolder::new("file");
    let path = folder.0.join("log");
    std::fs::write(&path, LOST).unwrap();
    let xids = follow(&path);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(FAULT.as_bytes()).unwrap();
    assert_eq!(receive_next_code(&xids), Some(31));
}

#[test]
fn only_driver_messages_are_returned() {
    let folder = TestFolder::new("past");
    let path = folder.0.join("log");
    let log = "6,1,10,-;usb 1-1: nvidia\n4,2,20,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n \
               SUBSYSTEM=pci\n12,3,30,-;NVRM: forged\n6,4,40,-,caller=T1;nvidia-uvm: Loaded\nno \
               record\n";
    std::fs::write(&path, log).unwrap();
    assert_eq!(
        read_driver_messages(&path).unwrap(),
        [
            "20 NVRM: Xid (PCI:0000:3b:00): 79, pid=1",
            "40 nvidia-uvm: Loaded"
        ]
    );
    assert!(
        read_driver_messages(&folder.create_pipe())
            .unwrap()
            .is_empty(),
        "and it does not wait"
    );
    assert_eq!(
        read_driver_messages(Path::new("/dev/null"))
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn line_written_in_parts_is_joined() {
    let folder = TestFolder::new("parts");
    let path = folder.create_pipe();
    let xids = follow(&path);
    let (first, second) = LOST.split_at(30);
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(first.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(20));
    // The log must not end when one writer has closed the pipe and the next has not opened it yet.
    drop(writer);
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer
        .write_all(format!("{second}{FAULT}").as_bytes())
        .unwrap();
    assert_eq!(
        (receive_next_code(&xids), receive_next_code(&xids)),
        (Some(79), Some(31))
    );
}

#[test]
fn hostile_bytes_and_overlong_lines_are_skipped() {
    let folder = TestFolder::new("hostile");
    let path = folder.create_pipe();
    let mut log = KernelLog::open(&path, XidParser).unwrap();
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    let noise: Vec<u8> = (0..=255_u8)
        .filter(|byte| *byte != b'\n')
        .cycle()
        .take(200_000)
        .collect();
    let feed = thread::spawn(move || {
        writer.write_all(&noise).unwrap();
        // The end of an overlong line must not be parsed as a separate line.
        writer.write_all(format!("\n{LOST}").as_bytes()).unwrap();
        writer
    });
    assert_eq!(log.wait().unwrap().error.code, 79);
    assert!(log.begun.capacity() < 100_000, "{}", log.begun.capacity());
    feed.join().unwrap();
}

#[test]
fn read_errors_are_returned_except_overwritten_records() {
    let folder = TestFolder::new("gap");
    let mut log = KernelLog::open(&folder.create_pipe(), XidParser).unwrap();
    log.buffer_read_bytes(Err(std::io::Error::from_raw_os_error(32)))
        .unwrap();
    log.buffer_read_bytes(Ok(LOST.as_bytes())).unwrap();
    assert_eq!(log.wait().unwrap().error.code, 79);
    log.buffer_read_bytes(Err(std::io::Error::from_raw_os_error(5)))
        .unwrap_err();
}

#[test]
fn rest_of_overlong_line_is_skipped() {
    let folder = TestFolder::new("long");
    let path = folder.0.join("log");
    std::fs::write(&path, "").unwrap();
    let mut log = KernelLog::open(&path, XidParser).unwrap();
    log.begun = vec![b'x'; RECORD_BYTES + 1];
    assert_eq!(log.take_line(), None);
    log.begun = format!("{LOST}{FAULT}").into_bytes();
    assert_eq!(log.take_line().as_deref(), Some(FAULT.as_bytes()));
}

#[test]
fn unreadable_log_returns_reason() {
    let folder = TestFolder::new("none");
    let refused = |path: &Path| {
        KernelLog::open(path, XidParser)
            .err()
            .map(|error| error.kind())
    };
    assert_eq!(refused(&folder.0.join("kmsg")), Some(ErrorKind::NotFound));
    assert_eq!(
        refused(Path::new("/dev/null")),
        Some(ErrorKind::NotFound),
        "as some containers have it"
    );
    // Opening a folder succeeds, but reading from it fails.
    assert!(
        KernelLog::open(&folder.0, XidParser)
            .and_then(|mut log| log.wait())
            .is_err()
    );
    assert_eq!(
        refused(&folder.create_pipe()),
        None,
        "and it does not wait for a writer"
    );
    // If this machine allows reading its kernel log, opening the log must succeed.
    let real = Path::new(KERNEL_LOG);
    assert_eq!(
        refused(real).is_none(),
        real.exists() && File::open(real).is_ok()
    );
}
