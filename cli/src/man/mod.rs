//! Sections that follow the options in a manual page.

mod smi;

use std::env;

use clap_mangen::roff::{Inline, Roff, bold, roman};
use jiff::Timestamp;

pub(crate) use self::smi::add_smi_sections;

/// Adds the notes from the end of a command's help, without reflowing them.
pub(crate) fn add_notes(page: &mut Roff, text: &str) {
    page.control("SH", ["NOTES"]);
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

/// Adds the section with related manual pages.
pub(crate) fn add_see_also(page: &mut Roff, own: &str) {
    page.control("SH", ["SEE ALSO"]);
    let pages = ["gpumon", "nvidia-smi"]
        .into_iter()
        .filter(|page| *page != own);
    let mut words: Vec<Inline> = Vec::new();
    for page in pages {
        words.extend([
            bold(page),
            roman(if page == "nvidia-smi" { "(1)" } else { "(1), " }),
        ]);
    }
    page.text(words);
}

/// Returns the date for manual pages, such as `2026-01-31`. The date comes from `SOURCE_DATE_EPOCH`
/// for reproducible builds, otherwise from the program file.
pub(crate) fn find_page_date() -> String {
    let named = env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds.parse().ok()?).ok());
    let modified = || env::current_exe().ok()?.metadata().ok()?.modified().ok();
    let built = named
        .or_else(|| Timestamp::try_from(modified()?).ok())
        .unwrap_or_default();
    built.strftime("%Y-%m-%d").to_string()
}

fn add_paragraph(page: &mut Roff, text: &str) {
    if !text.trim().is_empty() {
        page.text([roman(text.trim())]);
    }
}
