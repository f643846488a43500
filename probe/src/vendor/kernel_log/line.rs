//! Parsing of single lines of the kernel log.

/// The maximum length of a driver message in characters. Every message is sent to all clients, so
/// that longer ones are cut.
const LONGEST_MESSAGE: usize = 512;

/// The prefixes of the drivers' messages.
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

/// Returns the message if it is a driver's, with its time in microseconds since the kernel started.
pub(super) fn message(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (time, text) = split_prefix(line.trim_end())?;
    let is_of_driver = DRIVERS.iter().any(|beginning| text.starts_with(beginning));
    is_of_driver.then(|| time.map_or_else(|| text.to_owned(), |time| format!("{time} {text}")))
}

/// Returns the text of a line, if the kernel wrote it.
pub(in crate::vendor) fn text(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    split_prefix(line.trim_end()).map(|(_, text)| text.to_owned())
}

/// Returns a message without control characters and limited in length, for clients.
pub(in crate::vendor) fn printable(message: &str) -> String {
    let letters = message.trim().chars().filter(|letter| !letter.is_control());
    letters.take(LONGEST_MESSAGE).collect()
}

/// Splits a line of `/dev/kmsg` into its time and its text. The prefix consists of priority,
/// number, time and flags: `4,1234,567890,-;text`.
///
/// Returns `None` for lines that programs wrote: the facility in their priority is not 0, the
/// kernel's.
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
