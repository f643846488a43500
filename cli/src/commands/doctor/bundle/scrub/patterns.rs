//! Detection of names that can be recognized by their format: paths, addresses and UUIDs.

use std::net::{IpAddr, SocketAddr};

use crate::json_text::NameKind;

/// Prefixes of public paths, which are the same on many machines.
const PUBLIC_PREFIXES: &str = "/dev/dri/ /dev/dxg /dev/kmsg /dev/nvidia /proc/ /sys/bus/ \
                               /sys/class/ /sys/devices/ /sys/module/ /usr/bin/ /usr/lib/ \
                               /usr/lib64/ /lib/ /lib64/ /run/gpumon/ /run/nvidia/ \
                               /run/nvidia-persistenced/";
/// Path components that may lead out of a public directory, as in `/proc/PID/root`.
const UNSAFE_PARTS: [&str; 3] = ["..", "cwd", "root"];

/// The formats of IDs and addresses, in which `x` is a hexadecimal digit.
const ID_PATTERNS: [(&str, NameKind); 2] = [
    ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", NameKind::Id),
    ("xx:xx:xx:xx:xx:xx", NameKind::Address),
];
/// The minimum number of digits of a UUID that is replaced. CUDA also accepts the start of a UUID;
/// fewer than four digits identify nothing.
const MIN_UUID_DIGITS: usize = 4;
/// The minimum number of hexadecimal digits of a hash or an ID. Shorter digit sequences are treated
/// as numbers.
const MIN_HASH_DIGITS: usize = 32;

/// Returns the length, kind and text of the name at the start of `rest`. `before` is the preceding
/// character.
pub(super) fn find_name(rest: &str, before: Option<char>) -> Option<(usize, NameKind, String)> {
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let (length, kind) = find_path_or_url(rest).or_else(|| find_word(rest))?;
    Some((length, kind, rest[..length].to_owned()))
}

fn find_path_or_url(rest: &str) -> Option<(usize, NameKind)> {
    let found = &rest[..path_length(rest)];
    let is_scheme = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
    };
    if found
        .split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && is_scheme(scheme))
    {
        return Some((found.len(), NameKind::Address));
    }
    let is_path = (found.starts_with('/') && found.len() > 1) || found.starts_with("~/");
    let folder = format!("{}/", found.trim_end_matches('/'));
    let leads = |beginning: &str| folder.starts_with(beginning) || beginning.starts_with(&folder);
    let is_public = PUBLIC_PREFIXES.split(' ').any(leads)
        && !found.split('/').any(|part| UNSAFE_PARTS.contains(&part));
    let is_public = is_public || folder == "/usr/local/";
    (is_path && !is_public).then_some((found.len(), NameKind::Path))
}

/// Returns the length of the path at the start of `rest`. The path ends before a space, or before
/// the next path in a list.
pub(in super::super) fn path_length(rest: &str) -> usize {
    let end = rest
        .find(|letter: char| letter.is_whitespace() || "\"'`<>|".contains(letter))
        .unwrap_or(rest.len());
    let mut next = rest[..end].match_indices(":/").map(|(at, _)| at);
    let end = next
        .find(|at| !rest[at + 2..].starts_with('/'))
        .unwrap_or(end);
    rest[..end]
        .trim_end_matches(['.', ',', ';', ':', ')', ']'])
        .len()
}

fn find_word(rest: &str) -> Option<(usize, NameKind)> {
    let run = |belongs: &dyn Fn(u8) -> bool| rest.bytes().take_while(|byte| belongs(*byte)).count();
    let whole = |length: usize| !rest[length..].starts_with(char::is_alphanumeric);
    let is_hex = |byte: u8| byte.is_ascii_hexdigit();
    let prefix = super::uuid_prefix_length(rest);
    let length = prefix
        + rest[prefix..]
            .bytes()
            .take_while(|byte| is_hex(*byte) || *byte == b'-')
            .count();
    if prefix > 0 && length >= prefix + MIN_UUID_DIGITS && whole(length) {
        return Some((length, NameKind::Id));
    }
    for (form, kind) in ID_PATTERNS {
        if matches_pattern(rest, form) && whole(form.len()) {
            return Some((form.len(), kind));
        }
    }
    let hex = run(&is_hex);
    if hex >= MIN_HASH_DIGITS && whole(hex) {
        return Some((hex, NameKind::Id));
    }
    let address = run(&|byte| is_hex(byte) || b".:".contains(&byte));
    let number = run(&|byte| byte.is_ascii_digit() || byte == b'.');
    for length in [address, number] {
        let found = rest[..length].trim_end_matches(['.', ':']);
        if is_address(found) && whole(found.len()) {
            return Some((found.len(), NameKind::Address));
        }
    }
    let token = run(&|byte| byte.is_ascii_alphanumeric() || b"._%+-@".contains(&byte));
    let found = rest[..token].trim_end_matches('.');
    let (user, host) = found.split_once('@')?;
    (!user.is_empty() && !host.is_empty()).then_some((found.len(), NameKind::Address))
}

/// Returns `true` if `text` starts with the format `form`.
fn matches_pattern(text: &str, form: &str) -> bool {
    let fits = |(byte, place): (u8, u8)| {
        if place == b'x' {
            byte.is_ascii_hexdigit()
        } else {
            byte == place
        }
    };
    text.len() >= form.len() && text.bytes().zip(form.bytes()).all(fits)
}

/// Returns `true` for an IP address, with or without a port, that is neither loopback nor
/// unspecified.
fn is_address(text: &str) -> bool {
    let port = || text.parse::<SocketAddr>().map(|socket| socket.ip());
    let address = text.parse::<IpAddr>().or_else(|_| port());
    address.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}
