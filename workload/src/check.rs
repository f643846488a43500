//! Results against their references, element by element.

use crate::{
    double_double::DoubleDouble,
    parallel::{self, CHUNK},
    protocol::Verification,
    random,
    real::Real,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub(crate) value: DoubleDouble,
    /// The size of what was computed with: errors are relative to that.
    pub(crate) scale: f64,
}

impl Verification {
    /// Nothing was checked, which is no success.
    pub(crate) fn nothing() -> Self {
        Self::for_words(0, 0)
    }

    /// So many elements, checked by what was made of all of them.
    pub(crate) fn for_all(checked: u64, is_right: bool) -> Self {
        Self::for_words(checked, if is_right { 0 } else { checked })
    }

    /// Words that were compared with others that are right.
    pub(crate) fn for_words(checked: u64, wrong: u64) -> Self {
        Self::from_counts(checked, wrong, None, 0.0, 0.0)
    }

    /// Both of two parts of a result, or of two looks at one.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self::from_counts(
            self.checked + other.checked,
            self.wrong + other.wrong,
            [self.first_wrong, other.first_wrong].into_iter().flatten().min(),
            self.largest_error.max(other.largest_error),
            self.tolerance.max(other.tolerance),
        )
    }

    pub(crate) fn from_counts(
        checked: u64,
        wrong: u64,
        first_wrong: Option<u64>,
        largest_error: f64,
        tolerance: f64,
    ) -> Self {
        Self { ok: checked > 0 && wrong == 0, checked, wrong, first_wrong, largest_error, tolerance }
    }

    pub(crate) fn for_element(index: u64, error: f64, tolerance: f64) -> Self {
        // No number is not within any tolerance.
        let is_right = error <= tolerance;
        let largest_error = if is_right { error } else { 0.0 };
        Self::from_counts(1, u64::from(!is_right), (!is_right).then_some(index), largest_error, tolerance)
    }
}

/// All parts of a result.
impl FromIterator<Self> for Verification {
    fn from_iter<Parts: IntoIterator<Item = Self>>(parts: Parts) -> Self {
        parts.into_iter().fold(Self::nothing(), Self::and)
    }
}

/// Compares the elements, of which the first has the index `first`, with what they should be.
pub(crate) fn compare<T: Real>(
    got: &[T],
    first: u64,
    tolerance: f64,
    expected: impl Fn(u64) -> Expected + Sync,
) -> Verification {
    of_each(got, first, |got, index| {
        let Expected { value, scale } = expected(index);
        let distance = value.distance(got.to_f64());
        // Where nothing was rounded there is no size to be relative to.
        let error = if distance == 0.0 { 0.0 } else { distance / (T::EPSILON * scale) };
        Verification::for_element(index, error, tolerance)
    })
}

/// Compares words that have to be equal.
pub(crate) fn compare_words(got: &[u64], first: u64, expected: impl Fn(u64) -> u64 + Sync) -> Verification {
    of_each(got, first, |got, index| {
        Verification::for_element(index, if *got == expected(index) { 0.0 } else { f64::INFINITY }, 0.0)
    })
}

/// What is found of all elements, by what is found of each one and its index.
fn of_each<T: Sync>(got: &[T], first: u64, check: impl Fn(&T, u64) -> Verification + Sync) -> Verification {
    let found = parallel::map((first..).step_by(CHUNK).zip(got.chunks(CHUNK)), &|(first, got)| {
        got.iter().zip(first..).map(|(got, index)| check(got, index)).collect()
    });
    found.into_iter().collect()
}

/// Compares words with the random ones of this seed.
pub(crate) fn compare_random(seed: u64) -> impl Fn(&[u64], u64) -> Verification + Copy {
    move |got, first| compare_words(got, first, |index| random::bits(seed, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(_: u64) -> Expected {
        Expected { value: DoubleDouble::from_f64(1.0), scale: 1.0 }
    }

    #[test]
    fn right_results_pass_and_their_error_is_told() {
        let got = [1.0_f32, 1.0 + f32::EPSILON, 1.0];
        let found = compare(&got, 0, 2.0, one);
        assert!(found.ok && (found.largest_error - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.checked, found.wrong), (3, 0));
    }

    #[test]
    fn a_wrong_element_fails_and_is_named() {
        let mut got = vec![1.0_f64; 100_000];
        got[70_001] = 1.0 + 3.0 * f64::EPSILON;
        got[90_000] = -1.0;
        let found = compare(&got, 1000, 2.0, one);
        assert!(!found.ok, "{found:?}");
        assert_eq!((found.checked, found.wrong, found.first_wrong), (100_000, 2, Some(71_001)));
    }

    #[test]
    fn what_is_no_number_or_was_never_written_fails() {
        for poison in [f32::NAN, f32::INFINITY, f32::POISON, f32::from_bits(u32::MAX)] {
            assert!(!compare(&[1.0, poison], 0, 1e30, one).ok, "{poison}");
        }
    }

    #[test]
    fn nothing_checked_is_a_failure() {
        assert!(!compare::<f32>(&[], 0, 1.0, one).ok);
        assert!(!compare_words(&[], 0, |_| 0).ok);
        assert!(compare_words(&[5, 6], 5, |index| index).ok);
        assert_eq!(compare_words(&[5, 7], 5, |index| index).first_wrong, Some(6));
    }
}
