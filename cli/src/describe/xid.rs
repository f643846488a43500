//! What an Xid means, in so few words that it fits beside numbers.

use gpumon_probe::{
    model::Vendor,
    vendor::{ErrorInfo, describe_error},
};

use super::phrase::{Level, Phrase};

/// An Xid of which people hear most: what it says in a few words, and what to do in some more.
struct Known {
    codes: &'static [u32],
    short: &'static str,
    long: &'static str,
}

const fn known(codes: &'static [u32], short: &'static str, long: &'static str) -> Known {
    Known { codes, short, long }
}

const KNOWN: &[Known] = &[
    known(
        &[13],
        "illegal access",
        "a program's kernel did something illegal – debug that program",
    ),
    known(
        &[31, 137],
        "bad address",
        "a program used an address that it does not own – debug that program",
    ),
    known(
        &[43],
        "program stopped",
        "a program's work was stopped for an error of its own",
    ),
    known(
        &[45],
        "work cleared",
        "the work of a program that ended was cleared away",
    ),
    known(
        &[48, 171, 172],
        "memory error",
        "a memory error could not be corrected – reset the GPU",
    ),
    known(
        &[54],
        "no power cable",
        "a power cable of the board is not connected – plug it in",
    ),
    known(
        &[62, 169],
        "chip stopped",
        "a microcontroller of the GPU has stopped – reset the GPU",
    ),
    known(
        &[63],
        "bad memory row",
        "a bad place in memory was found – reset the GPU when it suits",
    ),
    known(
        &[64, 140],
        "bad memory row",
        "a bad place in memory cannot be replaced – have the board replaced",
    ),
    known(
        &[74],
        "NVLink failed",
        "an NVLink has failed – reset the GPUs that it joins",
    ),
    known(
        &[79],
        "fell off the bus",
        "GPU has fallen off the bus – reboot the machine",
    ),
    known(
        &[92],
        "memory errors",
        "corrected memory errors come very often – run field diagnostics",
    ),
    known(
        &[94],
        "memory error",
        "a memory error hit one program – start that program again",
    ),
    known(
        &[95],
        "memory error",
        "a memory error may have hit every program – end them and reset the GPU",
    ),
    known(
        &[109],
        "switch hangs",
        "the GPU did not switch to another program in time – reset the GPU",
    ),
    known(
        &[119],
        "GSP hangs",
        "the GPU's system processor does not answer – reset the GPU",
    ),
    known(
        &[120],
        "GSP failed",
        "the GPU's system processor has failed – reset the GPU",
    ),
    known(
        &[144, 145, 146, 147, 148, 149],
        "NVLink error",
        "the NVLink hardware reported an error",
    ),
    known(
        &[154],
        "see recovery",
        "what the driver asks for before the GPU is used again has changed",
    ),
];

pub(super) fn phrase(level: Level, code: u32, count: u32) -> Phrase {
    let times = if count > 1 {
        format!(" ({count} times)")
    } else {
        String::new()
    };
    let known = KNOWN.iter().find(|known| known.codes.contains(&code));
    let (short, long) = known.map_or_else(
        || of_catalogue(code),
        |known| (known.short, known.long.to_owned()),
    );
    Phrase::new(
        level,
        format!("Xid {code}: {short}"),
        format!("Xid {code}: {long}{times}"),
    )
}

/// Of the others the catalogue tells whose fault it is, and has a sentence.
fn of_catalogue(code: u32) -> (&'static str, String) {
    let ErrorInfo {
        meaning,
        by_program,
        needs_reset,
        ..
    } = describe_error(Vendor::Nvidia, code);
    let short = match (needs_reset, by_program) {
        (true, _) => "needs a reset",
        (false, true) => "program failed",
        (false, false) => "see events",
    };
    let mut letters = meaning.trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    (short, first.into_iter().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_words_that_fit_beside_numbers() {
        for code in 1..=999 {
            let phrase = phrase(Level::Act, code, 3);
            assert!(
                phrase.short.chars().count() <= Phrase::SHORT,
                "{}",
                phrase.short
            );
            assert!(
                phrase.long.starts_with(&format!("Xid {code}: "))
                    && phrase.long.ends_with(" (3 times)")
            );
        }
    }

    #[test]
    fn a_well_known_code_says_what_to_do() {
        let phrase = phrase(Level::Act, 79, 1);
        assert_eq!(phrase.short, "Xid 79: fell off the bus");
        assert_eq!(
            phrase.long,
            "Xid 79: GPU has fallen off the bus – reboot the machine"
        );
    }

    #[test]
    fn the_others_say_what_the_catalogue_knows() {
        assert_eq!(
            super::phrase(Level::Act, 46, 1).short,
            "Xid 46: needs a reset"
        );
        assert_eq!(
            super::phrase(Level::Act, 46, 1).long,
            "Xid 46: the GPU stopped working"
        );
        assert_eq!(
            super::phrase(Level::Warn, 69, 1).short,
            "Xid 69: program failed"
        );
        assert_eq!(
            super::phrase(Level::Warn, 999, 1).short,
            "Xid 999: see events"
        );
    }
}
