//! Cells of the summary: texts cut to a width, and words for missing values.

use gpumon_probe::vendor::nvml::query::{Answer, Code};

/// Converts bytes to MiB, rounded up.
pub(crate) fn mib(bytes: i128) -> i128 {
    (bytes + 1024 * 1024 - 1) / (1024 * 1024)
}

/// Returns the word that a narrow cell shows instead of a value.
pub(crate) fn missing(code: Code) -> &'static str {
    if code == Code::NOT_SUPPORTED {
        "N/A"
    } else {
        "ERR!"
    }
}

pub(crate) fn number(answer: &Answer, place: usize, show: impl FnOnce(i128) -> String) -> String {
    match answer {
        Ok(value) => value.at(place).map_or_else(|| "N/A".to_owned(), show),
        Err(code) => missing(*code).to_owned(),
    }
}

/// Cuts a text to a width by replacing its end with dots.
pub(crate) fn head(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

/// Cuts a text to a width by replacing its beginning with dots.
pub(crate) fn tail(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    "..."
        .chars()
        .chain(text.chars().skip(count - (width - 3)))
        .collect()
}

/// Returns a bus ID with a domain of four digits if four digits are enough.
pub(crate) fn short_bus_id(bus_id: &str) -> &str {
    bus_id
        .strip_prefix("0000")
        .filter(|rest| rest.starts_with(|c: char| c != ':'))
        .unwrap_or(bus_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_with_dots() {
        assert_eq!(
            head("NVIDIA RTX PRO 6000 Blackwell Server Edition", 27),
            "NVIDIA RTX PRO 6000 Blac..."
        );
        assert_eq!(head("NVIDIA H200", 27), "NVIDIA H200");
        assert_eq!(
            tail("/home/ana/micromamba/envs/sam6d/bin/python", 32),
            "...romamba/envs/sam6d/bin/python"
        );
        assert_eq!(
            tail("/usr/libexec/gnome-initial-setup", 32),
            "/usr/libexec/gnome-initial-setup"
        );
        assert_eq!(short_bus_id("00000000:65:00.0"), "0000:65:00.0");
    }
}
