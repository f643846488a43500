//! Parsing of individual lines in the kernel log.

/// The maximum length of a driver message, in characters. Longer messages are truncated, because
/// every message is sent to all clients.
const MAX_MESSAGE_CHARS: usize = 512;

/// The prefixes by which the GPU drivers' messages are recognized.
const DRIVER_PREFIXES: [&str; 8] = [
    "NVRM: ",
    "nvidia",
    "[drm] [nvidia",
    "amdgpu",
    "[drm:amdgpu",
    "i915 ",
    "xe ",
    "[drm:xe",
];

/// If the line is a GPU driver's message, returns the message after its time in microseconds since
/// boot.
pub(super) fn parse_driver_message(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (time, text) = split_prefix(line.trim_end())?;
    let is_of_driver = DRIVER_PREFIXES
        .iter()
        .any(|beginning| text.starts_with(beginning));
    is_of_driver.then(|| time.map_or_else(|| text.to_owned(), |time| format!("{time} {text}")))
}

/// Returns the text of a line, or `None` if the line was not written by the kernel.
pub(in crate::vendor) fn parse_kernel_text(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    split_prefix(line.trim_end()).map(|(_, text)| text.to_owned())
}

/// Removes control characters from a message and truncates it, so that it can be sent to clients.
pub(in crate::vendor) fn make_printable(message: &str) -> String {
    let letters = message.trim().chars().filter(|letter| !letter.is_control());
    letters.take(MAX_MESSAGE_CHARS).collect()
}

/// Splits a line of `/dev/kmsg`, such as `4,1234,567890,-;text`, into its time and its text. The
/// prefix consists of priority, sequence number, time and flags.
///
/// Returns `None` for lines that programs have written. In the kernel's own lines, the facility in
/// the priority is 0.
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
