//! The sections of a manual page that follow its options, made of the text below a command's help.
//!
//! That text is written for a terminal: a heading that ends in a colon, below it terms indented by two columns, each
//! with its explanation behind two spaces or indented further on the next line; or a heading and what it says in one
//! line. A page has headings, tagged paragraphs and paragraphs for the same.

mod smi;

use std::{env, time::UNIX_EPOCH};

use clap_mangen::roff::{Inline, Roff, bold, roman};

pub(crate) use self::smi::smi;

/// What headings of the help are called on a page.
const HEADINGS: [(&str, &str); 1] = [("EXIT CODES", "EXIT STATUS")];

/// Adds a section for each heading of the text.
pub(crate) fn sections(page: &mut Roff, text: &str) {
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match (indent, line.trim()) {
            (_, "") => {}
            (0, line) => match line.split_once(':') {
                Some((heading, rest)) if heading.split(' ').count() <= 2 => {
                    let heading = heading.to_uppercase();
                    let known = HEADINGS.iter().find(|(help, _)| *help == heading);
                    page.control("SH", [known.map_or(heading.as_str(), |(_, page)| *page)]);
                    paragraph(page, rest);
                }
                _ => paragraph(page, line),
            },
            (1..=3, line) => {
                let (term, rest) = line.split_once("  ").unwrap_or((line, ""));
                page.control("TP", []);
                page.text([bold(term)]);
                paragraph(page, rest);
            }
            (_, line) => paragraph(page, line),
        }
    }
}

/// Adds where else to read.
pub(crate) fn see_also(page: &mut Roff, own: &str) {
    page.control("SH", ["SEE ALSO"]);
    let pages = ["gpumon", "nvidia-smi"].into_iter().filter(|page| *page != own);
    let mut words: Vec<Inline> = Vec::new();
    for page in pages {
        words.extend([bold(page), roman(if page == "nvidia-smi" { "(1)" } else { "(1), " })]);
    }
    page.text(words);
}

/// The day that stands on a page, as `2026-01-31`: when this program was built or installed. As for other things that
/// are built, `SOURCE_DATE_EPOCH` is another, so that the same sources make the same page at any time.
pub(crate) fn date() -> String {
    let named = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let modified = || env::current_exe().ok()?.metadata().ok()?.modified().ok();
    let seconds = || Some(modified()?.duration_since(UNIX_EPOCH).ok()?.as_secs());
    day(named.or_else(seconds).unwrap_or_default())
}

/// The day of a time since the beginning of 1970, by the calendar's rules: 146,097 days in 400 years, which for this
/// purpose begin in March, so that a leap day is the last of its year.
fn day(seconds: u64) -> String {
    // Days since the first of March of the year 0.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, and again.
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next) = if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year_of_era + next)
}

fn paragraph(page: &mut Roff, text: &str) {
    if !text.trim().is_empty() {
        page.text([roman(text.trim())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_terms_and_paragraphs_become_those_of_a_page() {
        let mut page = Roff::new();
        let text =
            "Examples:\n  gpumon wait -- sh\n      One\n      line: two\n\nFiles:\n  /a  held\n\nExit codes: 0 done";
        sections(&mut page, text);
        let text = page.render();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with(".ie") && !line.starts_with(".el")).collect();
        let expected = [
            ".SH EXAMPLES",
            ".TP",
            r"\fBgpumon wait \-\- sh\fR",
            "One",
            "line: two",
            ".SH FILES",
            ".TP",
            r"\fB/a\fR",
            "held",
            ".SH \"EXIT STATUS\"",
            "0 done",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn days_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_735_603_200, "2024-12-31"),
            (1_795_262_400, "2026-11-21"),
            (4_107_456_000, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(seconds), text, "{seconds}");
        }
    }
}
