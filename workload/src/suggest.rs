//! The valid word that was probably meant.

use strsim::osa_distance;

/// The valid word that is nearest to what was typed: the one that the fewest letters typed wrong,
/// left out, added or swapped with their neighbor make of it, whatever their case. `None` where
/// even that is another word.
pub fn nearest<'a>(typed: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let distances = valid
        .into_iter()
        .map(|word| (osa_distance(&typed, &word.to_lowercase()), word));
    // Of equals the first, so that the order of the valid words decides.
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    // One mistake in three letters; more, and it is a guess.
    (distance <= (typed.chars().count().max(word.chars().count()) / 3).max(1)).then_some(word)
}

/// The valid word that was probably meant, as a question, or else what else there is to say.
pub fn did_you_mean<'a>(
    typed: &str,
    valid: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    nearest(typed, valid).map_or_else(
        || otherwise.to_owned(),
        |word| format!("did you mean '{word}'?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_none() {
        let words = ["memory", "power", "temperature", "pid"];
        for (typed, meant) in [
            ("memroy", Some("memory")),
            ("Memory", Some("memory")),
            ("temprature", Some("temperature")),
            ("powr", Some("power")),
            ("pod", Some("pid")),
            ("frobnicate", None),
            ("", None),
            ("user", None),
        ] {
            assert_eq!(nearest(typed, words), meant, "{typed}");
        }
        assert_eq!(nearest("any", []), None);
    }
}
