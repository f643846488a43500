//! The filter for GPUs: it shows those that match every typed word. `tests/fleet-cases.json` has
//! cases that this filter and the page's are both tested with.

use gpumon_fleet::model::{FleetOwner, OwnerKind};

use super::{
    comparison::Comparison,
    rows::{Measured, Rows, Use},
    text::condition,
};

/// From this temperature on a GPU is hot.
const HOT_CELSIUS: f64 = 80.0;

/// All words hold at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter(Vec<Word>);

#[derive(Debug, Clone)]
struct Word {
    is_excluded: bool,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    State(State),
    Compared(Comparison),
    In(Place, String),
    Anywhere(String),
}

#[derive(Debug, Clone, Copy)]
enum State {
    Busy,
    Idle,
    Free,
    Held,
    Lost,
    Hot,
}

const STATES: [(&str, State); 6] = [
    ("busy", State::Busy),
    ("idle", State::Idle),
    ("free", State::Free),
    ("held", State::Held),
    ("lost", State::Lost),
    ("hot", State::Hot),
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
    /// # Errors
    /// What is wrong with a word, and the cure.
    pub(crate) fn parse(typed: &str) -> Result<Self, String> {
        let words = words(typed).into_iter().filter(|word| !word.is_empty());
        words
            .filter_map(|word| Word::parse(&word.to_lowercase()).transpose())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether each row is shown; `None` where all are.
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

/// Splits what is typed at spaces and commas, except inside quotes.
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

/// How much of a name has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    Part,
}

impl Fit {
    fn matches(self, name: &str, text: &str) -> bool {
        // Quotes only keep the parts of a word together.
        let name = name.to_lowercase().replace('"', "");
        if self == Self::Whole {
            name == text
        } else {
            name.contains(text)
        }
    }
}

impl Word {
    /// Whoever is still typing, as `user:`, is shown everything.
    fn parse(typed: &str) -> Result<Option<Self>, String> {
        let (is_excluded, word) = match typed.strip_prefix(['-', '!']) {
            Some(word) if !word.is_empty() => (true, word),
            _ => (false, typed),
        };
        let of = |test| Ok(Some(Self { is_excluded, test }));
        if let Some(compared) = Comparison::parse(word)? {
            return of(Test::Compared(compared));
        }
        if let Some((_, state)) = STATES.iter().find(|(name, _)| *name == word) {
            return of(Test::State(*state));
        }
        let in_place = word.split_once(':').and_then(|(name, text)| {
            PLACES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, place)| (*place, text.to_owned()))
        });
        match in_place {
            Some((_, text)) if text.is_empty() => Ok(None),
            Some((place, text)) => of(Test::In(place, text)),
            None => of(Test::Anywhere(word.to_owned())),
        }
    }
}

impl Test {
    /// Names of owners must be equal, since one name can contain another. Names of nodes and GPUs
    /// must be equal only if there is an equal one.
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
            Self::State(state) => state.matches(rows, row),
            Self::Compared(comparison) => comparison.matches(rows, row),
            Self::In(Place::Condition, text) => has_condition(rows, row, text),
            Self::In(place, text) => place.names(rows, row).any(|name| fit.matches(name, text)),
            Self::Anywhere(text) => {
                let owners = rows.owners(row).flat_map(names_of).flatten();
                let mut names = [Some(rows.node_name(row)), rows.model(row)]
                    .into_iter()
                    .flatten()
                    .chain(owners);
                names.any(|name| fit.matches(name, text)) || has_condition(rows, row, text)
            }
        }
    }
}

impl Place {
    /// What a row is called there.
    fn names<'a>(self, rows: &Rows<'a>, row: usize) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        let of_owners = |name: fn(&'a FleetOwner) -> Option<&'a str>| -> Box<dyn Iterator<Item = &'a str> + 'a> {
            Box::new(rows.owners(row).filter_map(name).collect::<Vec<_>>().into_iter())
        };
        match self {
            Self::Node => Box::new(std::iter::once(rows.node_name(row))),
            Self::Gpu => Box::new(rows.model(row).into_iter()),
            Self::User => of_owners(|owner| owner.user.as_deref()),
            Self::Job => of_owners(|owner| {
                (!matches!(owner.kind, OwnerKind::User | OwnerKind::Notebook))
                    .then_some(owner.id.as_str())
            }),
            Self::Notebook => {
                of_owners(|owner| (owner.kind == OwnerKind::Notebook).then_some(owner.id.as_str()))
            }
            Self::Namespace => of_owners(|owner| owner.namespace.as_deref()),
            Self::Condition => Box::new(std::iter::empty()),
        }
    }
}

fn names_of(owner: &FleetOwner) -> [Option<&str>; 3] {
    [
        owner.user.as_deref(),
        Some(&owner.id),
        owner.namespace.as_deref(),
    ]
}

fn has_condition(rows: &Rows<'_>, row: usize, text: &str) -> bool {
    let conditions = rows.conditions(row);
    conditions.iter().any(|one| {
        one.kind.to_lowercase().contains(text) || condition(&one.kind).to_lowercase().contains(text)
    })
}

impl State {
    fn matches(self, rows: &Rows<'_>, row: usize) -> bool {
        let at = rows.use_of(row);
        match self {
            Self::Busy => at == Use::Busy,
            Self::Idle => at == Use::Idle,
            Self::Free => at == Use::Free,
            Self::Held => matches!(at, Use::Busy | Use::Idle),
            Self::Lost => matches!(at, Use::Lost | Use::Unknown),
            Self::Hot => rows
                .reading(Measured::Temperature, row)
                .is_some_and(|celsius| celsius >= HOT_CELSIUS),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::GpuHealth;

    use super::*;
    use crate::fleet::testing::{Example, busy, fleet};

    #[test]
    fn every_word_holds_and_some_exclude() {
        let lost = Example {
            health: GpuHealth::NotResponding,
            ..Example::default()
        };
        let free = Example {
            processes: Some(0),
            model: "NVIDIA L4",
            ..Example::default()
        };
        let capped = Example {
            condition: Some(("power_capped", 1)),
            celsius: Some(84.0),
            ..busy("anna", 90.0)
        };
        let idle = Example {
            idle_s: Some(7200.0),
            ..busy("bob", 0.0)
        };
        let fleet = fleet(&[
            ("node1", &[busy("ana", 50.0), capped]),
            ("node11", &[free, lost, idle]),
        ]);
        let rows = Rows::new(&fleet);
        let shown = |typed: &str| {
            let shown = Filter::parse(typed).unwrap().shown(&rows);
            shown.map(|shown| (0..5).filter(|row| shown[*row]).collect::<Vec<_>>())
        };
        for (typed, expected) in [
            ("busy", vec![0, 1]),
            ("held -user:bob", vec![0, 1]),
            ("idle", vec![4]),
            ("free", vec![2]),
            ("lost", vec![3]),
            ("hot", vec![1]),
            ("node1", vec![0, 1, 2, 3, 4]),
            ("node:node1", vec![0, 1]),
            ("node:ode1", vec![0, 1, 2, 3, 4]),
            ("user:ana", vec![0]),
            ("user:an", vec![]),
            ("!busy, node:node11", vec![2, 3, 4]),
            ("l4", vec![2]),
            ("condition:power", vec![1]),
            ("Power-capped", vec![1]),
            ("job:103", vec![0, 4]),
            ("notebook:103", vec![]),
            ("idle>1h", vec![4]),
        ] {
            assert_eq!(shown(typed).unwrap(), expected, "{typed}");
        }
        assert_eq!((shown(""), shown("user:")), (None, None));
        assert!(
            Filter::parse("memory>")
                .unwrap_err()
                .contains("a number has to follow")
        );
    }
}
