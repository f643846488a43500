//! Suggestions for mistyped words.

use strsim::osa_distance;

/// Returns the valid word that is nearest to the typed word, ignoring case. The distance is the
/// number of wrong, missing, additional and swapped letters. Returns `None` if even the nearest
/// word is too different.
pub fn find_nearest<'a>(typed: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let distances = valid
        .into_iter()
        .map(|word| (osa_distance(&typed, &word.to_lowercase()), word));
    // If several words are equally near, the first of them is returned, so the order of the valid
    // words matters.
    let (distance, word) = distances.min_by_key(|(distance, _)| *distance)?;
    // One mistake per three letters is allowed. With more mistakes, the suggestion would only be a
    // guess.
    (distance <= (typed.chars().count().max(word.chars().count()) / 3).max(1)).then_some(word)
}

/// Returns a question that suggests the nearest valid word, or `otherwise` if no word is near
/// enough.
pub fn suggest_word<'a>(
    typed: &str,
    valid: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    find_nearest(typed, valid).map_or_else(
        || otherwise.to_owned(),
        |word| format!("did you mean '{word}'?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_gets_suggestion_but_unrelated_word_does_not() {
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
            assert_eq!(find_nearest(typed, words), meant, "{typed}");
        }
        assert_eq!(find_nearest("any", []), None);
    }
}
