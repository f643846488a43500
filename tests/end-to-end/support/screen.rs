//! A simple terminal emulator: it supports the sequences that full-screen views need.

/// Lines of cells, and the position of the cursor.
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

/// Returns the lines of a screen after this output.
pub(super) fn render_screen(written: &str) -> String {
    let mut screen = Screen {
        lines: Vec::new(),
        row: 0,
        column: 0,
    };
    let mut rest = written;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\u{1b}' => rest = screen.execute_sequence(rest),
            '\r' => screen.column = 0,
            '\n' => screen.row += 1,
            letter => screen.put_letter(letter),
        }
    }
    screen
        .lines
        .into_iter()
        .map(|line| line.into_iter().collect::<String>() + "\n")
        .collect()
}

impl Screen {
    /// Executes a control sequence, and returns the text after it.
    fn execute_sequence<'a>(&mut self, sequence: &'a str) -> &'a str {
        if let Some(query) = sequence.strip_prefix(']') {
            return query.split_once('\u{7}').map_or("", |(_, rest)| rest);
        }
        let Some(sequence) = sequence.strip_prefix('[') else {
            return sequence;
        };
        let Some(end) = sequence.find(|letter: char| ('@'..='~').contains(&letter)) else {
            return "";
        };
        let (parameters, rest) = (&sequence[..end], &sequence[end + 1..]);
        match &sequence[end..=end] {
            "H" => {
                let mut places = parameters
                    .split(';')
                    .map(|place| place.parse::<usize>().unwrap_or(1).saturating_sub(1));
                (self.row, self.column) = (places.next().unwrap_or(0), places.next().unwrap_or(0));
            }
            "J" => self.lines.clear(),
            _ => {}
        }
        rest
    }

    fn put_letter(&mut self, letter: char) {
        while self.lines.len() <= self.row {
            self.lines.push(Vec::new());
        }
        let line = &mut self.lines[self.row];
        while line.len() <= self.column {
            line.push(' ');
        }
        line[self.column] = letter;
        self.column += 1;
    }
}

#[test]
fn text_is_written_at_cursor() {
    assert_eq!(
        render_screen("\u{1b}[2J\u{1b}[2;3Hab\u{1b}[1mc\u{1b}[2;4HX"),
        "\n  aXc\n"
    );
    assert_eq!(render_screen("old\u{1b}[2J\u{1b}[1;1Hnew"), "new\n");
}
