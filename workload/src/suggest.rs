//! Suggestions for words that were typed wrong.

use strsim::osa_distance;

/// Returns the valid word that is nearest to a typed one, ignoring case. The distance is the number
/// of wrong, missing, additional and swapped letters. Returns `None` if even the nearest word is
/// too different.
pub fn nearest<'a>(typed: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let distances = valid
        .into_iter()
        .map(|word| (osa_distance(&typed, &word.to_lowercase()), word));
    // Among equally near words the first is returned, so that the order of the valid words decides.
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    // One mistake in three letters is allowed. With more, the result would be a guess.
    (distance <= (typed.chars().count().max(word.chars().count()) / 3).max(1)).then_some(word)
}

/// Returns the question whether the nearest valid word was meant, or `otherwise` if no word is near
/// enough.
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
