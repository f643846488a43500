//! Cells of the summary: text truncated to a width, and words for missing values.

use gpumon_probe::vendor::nvml::query::{Answer, Code};

/// Converts bytes to MiB, rounded up.
pub(crate) fn to_mib(bytes: i128) -> i128 {
    (bytes + 1024 * 1024 - 1) / (1024 * 1024)
}

/// Returns the word that replaces a missing value in a narrow cell.
pub(crate) fn find_replacement_word(code: Code) -> &'static str {
    if code == Code::NOT_SUPPORTED {
        "N/A"
    } else {
        "ERR!"
    }
}

pub(crate) fn format_number(
    answer: &Answer,
    place: usize,
    show: impl FnOnce(i128) -> String,
) -> String {
    match answer {
        Ok(value) => value
            .number_at(place)
            .map_or_else(|| "N/A".to_owned(), show),
        Err(code) => find_replacement_word(*code).to_owned(),
    }
}

/// Truncates text to `width` by replacing its end with dots.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

/// Truncates text to `width` by replacing its start with dots.
pub(crate) fn cut_start(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    "..."
        .chars()
        .chain(text.chars().skip(count - (width - 3)))
        .collect()
}

/// Shortens a bus ID's domain from eight to four digits, if the first four digits are zeros.
pub(crate) fn shorten_bus_id(bus_id: &str) -> &str {
    bus_id
        .strip_prefix("0000")
        .filter(|rest| rest.starts_with(|c: char| c != ':'))
        .unwrap_or(bus_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_with_dots() {
        assert_eq!(
            cut_end("NVIDIA RTX PRO 6000 Blackwell Server Edition", 27),
            "NVIDIA RTX PRO 6000 Blac..."
        );
        assert_eq!(cut_end("NVIDIA H200", 27), "NVIDIA H200");
        assert_eq!(
            cut_start("/home/ana/micromamba/envs/sam6d/bin/python", 32),
            "...romamba/envs/sam6d/bin/python"
        );
        assert_eq!(
            cut_start("/usr/libexec/gnome-initial-setup", 32),
            "/usr/libexec/gnome-initial-setup"
        );
        assert_eq!(shorten_bus_id("00000000:65:00.0"), "0000:65:00.0");
    }
}
