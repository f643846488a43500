//! One line of the kernel's log.

/// The longest message of a driver that is kept: each one is sent to every client.
const LONGEST_MESSAGE: usize = 512;

/// The beginnings of the drivers' messages.
const DRIVERS: [&str; 8] = [
    "NVRM: ",
    "nvidia",
    "[drm] [nvidia",
    "amdgpu",
    "[drm:amdgpu",
    "i915 ",
    "xe ",
    "[drm:xe",
];

/// Returns a driver's message, with its time in microseconds since the start of the kernel.
pub(super) fn message(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (time, text) = split_prefix(line.trim_end())?;
    let is_of_driver = DRIVERS.iter().any(|beginning| text.starts_with(beginning));
    is_of_driver.then(|| time.map_or_else(|| text.to_owned(), |time| format!("{time} {text}")))
}

/// Returns the text of a line that the kernel has written.
pub(in crate::vendor) fn text(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    split_prefix(line.trim_end()).map(|(_, text)| text.to_owned())
}

/// Returns a message as it may be sent to clients: without control characters, and not too long.
pub(in crate::vendor) fn printable(message: &str) -> String {
    let letters = message.trim().chars().filter(|letter| !letter.is_control());
    letters.take(LONGEST_MESSAGE).collect()
}

/// Splits a line of `/dev/kmsg` into its time and its text. The prefix has priority, number, time
/// and flags: `4,1234,567890,-;text`.
///
/// Lines of programs are left out: the facility in their priority is not the kernel's 0.
fn split_prefix(line: &str) -> Option<(Option<u64>, &str)> {
    let Some((prefix, text)) = line.split_once(';') else {
        return Some((None, line));
    };
    let mut fields = prefix.split(',');
    match (fields.next().map(str::parse::<u32>), fields.nth(1)) {
        (Some(Ok(priority)), Some(time)) => (priority < 8).then_some((time.parse().ok(), text)),
        _ => Some((None, line)),
    }
}
