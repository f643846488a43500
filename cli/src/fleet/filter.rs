//! The filter for GPUs, which keeps the GPUs that match every word. This filter and that of the web
//! page are tested with the same cases, `fleet/filter-cases.json`.

use gpumon_fleet::{
    Rows,
    model::{FleetOwner, GpuState, NodeHealth, OwnerKind},
};

use super::{comparison::Comparison, text::condition};

/// The temperature from which on a GPU counts as hot.
const HOT: &str = "temperature>=80c";

/// A filter of words that must all match.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter(Vec<Word>);

#[derive(Debug, Clone)]
struct Word {
    is_excluded: bool,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    State(&'static [GpuState]),
    Critical,
    Compared(Comparison),
    In(Place, String),
    Anywhere(String),
}

const STATES: [(&str, &[GpuState]); 5] = [
    ("busy", &[GpuState::Busy]),
    ("idle", &[GpuState::Idle]),
    ("free", &[GpuState::Free]),
    ("held", &[GpuState::Busy, GpuState::Idle]),
    ("lost", &[GpuState::Lost, GpuState::Unknown]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Node,
    Gpu,
    User,
    Job,
    Notebook,
    Namespace,
    Condition,
}

const PLACES: [(&str, Place); 7] = [
    ("node", Place::Node),
    ("gpu", Place::Gpu),
    ("user", Place::User),
    ("job", Place::Job),
    ("notebook", Place::Notebook),
    ("namespace", Place::Namespace),
    ("condition", Place::Condition),
];

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// Returns the mistake and how to correct it.
    pub(crate) fn parse(typed: &str) -> Result<Self, String> {
        let words = words(typed).into_iter().filter(|word| !word.is_empty());
        words
            .filter_map(|word| Word::parse(&word.to_lowercase()).transpose())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns for each row whether it matches, or `None` if all rows do.
    pub(crate) fn shown(&self, rows: &Rows<'_>) -> Option<Vec<bool>> {
        if self.0.is_empty() {
            return None;
        }
        let mut shown = vec![true; rows.count()];
        for word in &self.0 {
            let fit = word.test.fit(rows);
            for (row, shown) in shown.iter_mut().enumerate() {
                *shown &= word.test.matches(rows, row, fit) != word.is_excluded;
            }
        }
        Some(shown)
    }
}

/// Splits a filter at spaces and commas, except inside quotes.
fn words(typed: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in typed.chars() {
        if letter == '"' {
            is_quoted = !is_quoted;
        } else if !is_quoted && (letter.is_whitespace() || letter == ',') {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words
}

/// Whether a name must match in full or in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    Part,
}

impl Fit {
    fn matches(self, name: &str, text: &str) -> bool {
        // Quotes only keep the parts of a word together, so names are compared without them.
        let name = name.to_lowercase().replace('"', "");
        if self == Self::Whole {
            name == text
        } else {
            name.contains(text)
        }
    }
}

impl Word {
    /// Parses a word. Returns `None` if it is incomplete, such as `user:`.
    fn parse(typed: &str) -> Result<Option<Self>, String> {
        let (is_excluded, word) = match typed.strip_prefix(['-', '!']) {
            Some(word) if !word.is_empty() => (true, word),
            _ => (false, typed),
        };
        let with = |test| Ok(Some(Self { is_excluded, test }));
        let compared = if word == "hot" { HOT } else { word };
        if let Some(comparison) = Comparison::parse(compared)? {
            return with(Test::Compared(comparison));
        }
        if word == "critical" {
            return with(Test::Critical);
        }
        if let Some((_, states)) = STATES.iter().find(|(name, _)| *name == word) {
            return with(Test::State(states));
        }
        let Some((name, text)) = word.split_once(':') else {
            return with(Test::Anywhere(word.to_owned()));
        };
        if let Some((_, place)) = PLACES.iter().find(|(known, _)| *known == name) {
            return if text.is_empty() {
                Ok(None)
            } else {
                with(Test::In(*place, text.to_owned()))
            };
        }
        // A colon can also be part of a node's name with a port.
        let is_name = text.starts_with(|first: char| first.is_ascii_digit());
        if is_name || name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return with(Test::Anywhere(word.to_owned()));
        }
        let places = PLACES.map(|(name, _)| format!("{name}:")).join(", ");
        Err(format!("{word}: nothing is called {name}. Use {places}."))
    }
}

impl Test {
    /// Returns how names are compared. Names of owners must match in full, because one name can
    /// contain another. Names of nodes and GPUs must match in full only if one of them does.
    fn fit(&self, rows: &Rows<'_>) -> Fit {
        match self {
            Self::In(Place::User | Place::Job | Place::Notebook | Place::Namespace, _) => {
                Fit::Whole
            }
            Self::In(place @ (Place::Node | Place::Gpu), text) => {
                let is_called_so = |row| {
                    place
                        .names(rows, row)
                        .any(|name| Fit::Whole.matches(name, text))
                };
                if (0..rows.count()).any(is_called_so) {
                    Fit::Whole
                } else {
                    Fit::Part
                }
            }
            _ => Fit::Part,
        }
    }

    fn matches(&self, rows: &Rows<'_>, row: usize, fit: Fit) -> bool {
        match self {
            Self::State(states) => states.contains(&rows.state(row)),
            Self::Critical => is_critical(rows, row),
            Self::Compared(comparison) => comparison.matches(rows, row),
            Self::In(Place::Condition, text) => has_condition(rows, row, text),
            Self::In(place, text) => place.names(rows, row).any(|name| fit.matches(name, text)),
            Self::Anywhere(text) => {
                let owners = rows
                    .list_owners(row)
                    .iter()
                    .flat_map(|owner| names_of(owner));
                let mut names = [
                    Some(rows.node_name(rows.node_place(row))),
                    rows.model_name(row),
                ]
                .into_iter()
                .chain(owners)
                .flatten();
                names.any(|name| fit.matches(name, text)) || has_condition(rows, row, text)
            }
        }
    }
}

impl Place {
    /// Returns the row's names that this prefix refers to.
    fn names<'a>(self, rows: &Rows<'a>, row: usize) -> impl Iterator<Item = &'a str> {
        let of_row = match self {
            Self::Node => Some(rows.node_name(rows.node_place(row))),
            Self::Gpu => rows.model_name(row),
            _ => None,
        };
        let of_owners = rows
            .list_owners(row)
            .iter()
            .filter_map(move |owner| match self {
                Self::User => owner.user.as_deref(),
                Self::Job => match owner.kind {
                    OwnerKind::User | OwnerKind::Notebook => None,
                    _ => Some(owner.id.as_str()),
                },
                Self::Notebook => (owner.kind == OwnerKind::Notebook).then_some(owner.id.as_str()),
                Self::Namespace => owner.namespace.as_deref(),
                Self::Node | Self::Gpu | Self::Condition => None,
            });
        of_row.into_iter().chain(of_owners)
    }
}

fn names_of(owner: &FleetOwner) -> [Option<&str>; 3] {
    [
        owner.user.as_deref(),
        Some(&owner.id),
        owner.namespace.as_deref(),
    ]
}

/// Returns `true` if a GPU does not respond or has a critical condition.
fn is_critical(rows: &Rows<'_>, row: usize) -> bool {
    let health = rows.fleet.nodes.health.get(rows.node_place(row));
    let is_node_down = health.is_some_and(|health| *health != NodeHealth::Up);
    let is_gone = match rows.state(row) {
        GpuState::Lost => true,
        GpuState::Unknown => is_node_down,
        _ => false,
    };
    let worst = rows.list_conditions(row).first();
    is_gone || worst.is_some_and(|worst| worst.severity >= 3)
}

fn has_condition(rows: &Rows<'_>, row: usize, text: &str) -> bool {
    let conditions = rows.list_conditions(row);
    conditions.iter().any(|one| {
        one.kind.to_lowercase().contains(text) || condition(&one.kind).to_lowercase().contains(text)
    })
}
