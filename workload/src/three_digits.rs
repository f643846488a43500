//! Numbers as people read them.

/// At most three significant digits, and no more than two after the point.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        below if below < 9.995 => format!("{value:.2}"),
        below if below < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_at_every_size() {
        for (value, text) in
            [(0.0, "0.00"), (8.534, "8.53"), (9.996, "10.0"), (78.23, "78.2"), (99.96, "100"), (140.4, "140")]
        {
            assert_eq!(three_digits(value), text);
        }
    }
}
