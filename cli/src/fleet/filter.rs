//! The filter for GPUs, which keeps the GPUs that match every word. The web page has the same
//! filter, and both are tested with the cases in `fleet/filter-cases.json`.

use gpumon_fleet::{
    Rows,
    model::{
        FleetOwner, GpuState, MEMORY_TOTAL, MEMORY_USED, NodeHealth, OwnerKind, POWER, POWER_LIMIT,
        TEMPERATURE, UTILIZATION,
    },
};
use gpumon_probe::{model::fields::Unit, units::Amount};

use super::text::describe_condition;

/// The comparison for which the word `hot` is an abbreviation.
const HOT_COMPARISON: &str = "temperature>=80c";

/// A filter that consists of words. A GPU must match every word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter(Vec<FilterWord>);

#[derive(Debug, Clone)]
struct FilterWord {
    is_excluded: bool,
    test: Criterion,
}

#[derive(Debug, Clone)]
enum Criterion {
    State(&'static [GpuState]),
    Critical,
    Compared(Comparison),
    In(NameKind, String),
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
enum NameKind {
    Node,
    Gpu,
    User,
    Job,
    Notebook,
    Namespace,
    Condition,
}

const NAME_KINDS: [(&str, NameKind); 7] = [
    ("node", NameKind::Node),
    ("gpu", NameKind::Gpu),
    ("user", NameKind::User),
    ("job", NameKind::Job),
    ("notebook", NameKind::Notebook),
    ("namespace", NameKind::Namespace),
    ("condition", NameKind::Condition),
];

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// Returns a message that explains the mistake and how to correct it.
    pub(crate) fn parse(typed: &str) -> Result<Self, String> {
        let words = split_filter_words(typed)
            .into_iter()
            .filter(|word| !word.is_empty());
        words
            .filter_map(|word| FilterWord::parse(&word.to_lowercase()).transpose())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns for each row whether it matches, or `None` if all rows match.
    pub(crate) fn select_rows(&self, rows: &Rows<'_>) -> Option<Vec<bool>> {
        if self.0.is_empty() {
            return None;
        }
        let mut shown = vec![true; rows.count()];
        for word in &self.0 {
            let fit = word.test.choose_name_match(rows);
            for (row, shown) in shown.iter_mut().enumerate() {
                *shown &= word.test.matches_row(rows, row, fit) != word.is_excluded;
            }
        }
        Some(shown)
    }
}

/// Splits a filter at spaces and commas, except inside quotes.
fn split_filter_words(typed: &str) -> Vec<String> {
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

/// How a name is compared: in full or in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameMatch {
    Whole,
    Part,
}

impl NameMatch {
    fn is_match(self, name: &str, text: &str) -> bool {
        // Quotes only group the parts of a word, so they are removed before names are compared.
        let name = name.to_lowercase().replace('"', "");
        if self == Self::Whole {
            name == text
        } else {
            name.contains(text)
        }
    }
}

impl FilterWord {
    /// Parses a word. Returns `None` if the word is incomplete, such as `user:`.
    fn parse(typed: &str) -> Result<Option<Self>, String> {
        let (is_excluded, word) = match typed.strip_prefix(['-', '!']) {
            Some(word) if !word.is_empty() => (true, word),
            _ => (false, typed),
        };
        let with = |test| Ok(Some(Self { is_excluded, test }));
        let compared = if word == "hot" { HOT_COMPARISON } else { word };
        if let Some(comparison) = Comparison::parse(compared)? {
            return with(Criterion::Compared(comparison));
        }
        if word == "critical" {
            return with(Criterion::Critical);
        }
        if let Some((_, states)) = STATES.iter().find(|(name, _)| *name == word) {
            return with(Criterion::State(states));
        }
        let Some((name, text)) = word.split_once(':') else {
            return with(Criterion::Anywhere(word.to_owned()));
        };
        if let Some((_, place)) = NAME_KINDS.iter().find(|(known, _)| *known == name) {
            return if text.is_empty() {
                Ok(None)
            } else {
                with(Criterion::In(*place, text.to_owned()))
            };
        }
        // In a word such as `node01:9400`, the text after the colon is a port. Such a word is
        // accepted, and the whole word is searched for.
        let is_name = text.starts_with(|first: char| first.is_ascii_digit());
        if is_name || name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return with(Criterion::Anywhere(word.to_owned()));
        }
        let places = NAME_KINDS.map(|(name, _)| format!("{name}:")).join(", ");
        Err(format!(
            "{word}: unknown field {name}. Valid fields: {places}."
        ))
    }
}

impl Criterion {
    /// Returns how names are compared. The name of an owner must match in full, because it may also
    /// be part of another owner's name. For nodes and GPUs, partial matches count only if no name
    /// matches in full.
    fn choose_name_match(&self, rows: &Rows<'_>) -> NameMatch {
        match self {
            Self::In(
                NameKind::User | NameKind::Job | NameKind::Notebook | NameKind::Namespace,
                _,
            ) => NameMatch::Whole,
            Self::In(place @ (NameKind::Node | NameKind::Gpu), text) => {
                let is_called_so = |row| {
                    place
                        .list_names(rows, row)
                        .any(|name| NameMatch::Whole.is_match(name, text))
                };
                if (0..rows.count()).any(is_called_so) {
                    NameMatch::Whole
                } else {
                    NameMatch::Part
                }
            }
            _ => NameMatch::Part,
        }
    }

    fn matches_row(&self, rows: &Rows<'_>, row: usize, fit: NameMatch) -> bool {
        match self {
            Self::State(states) => states.contains(&rows.state(row)),
            Self::Critical => is_critical(rows, row),
            Self::Compared(comparison) => comparison.matches_row(rows, row),
            Self::In(NameKind::Condition, text) => has_condition(rows, row, text),
            Self::In(place, text) => place
                .list_names(rows, row)
                .any(|name| fit.is_match(name, text)),
            Self::Anywhere(text) => {
                let owners = rows
                    .list_owners(row)
                    .iter()
                    .flat_map(|owner| list_owner_names(owner));
                let mut names = [
                    Some(rows.node_name(rows.node_position(row))),
                    rows.model_name(row),
                ]
                .into_iter()
                .chain(owners)
                .flatten();
                names.any(|name| fit.is_match(name, text)) || has_condition(rows, row, text)
            }
        }
    }
}

impl NameKind {
    /// Returns the row's names of this kind.
    fn list_names<'a>(self, rows: &Rows<'a>, row: usize) -> impl Iterator<Item = &'a str> {
        let of_row = match self {
            Self::Node => Some(rows.node_name(rows.node_position(row))),
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

fn list_owner_names(owner: &FleetOwner) -> [Option<&str>; 3] {
    [
        owner.user.as_deref(),
        Some(&owner.id),
        owner.namespace.as_deref(),
    ]
}

/// Returns `true` if the row's GPU does not respond or has a critical condition.
fn is_critical(rows: &Rows<'_>, row: usize) -> bool {
    let health = rows.fleet.nodes.health.get(rows.node_position(row));
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
        one.kind.to_lowercase().contains(text)
            || describe_condition(&one.kind).to_lowercase().contains(text)
    })
}

// Filter words that compare a reading with a number, such as `memory>80GiB`, `utilization<10`, or
// `idle>=1h`.

/// A quantity that a filter can compare.
#[derive(Debug)]
struct Quantity {
    name: &'static str,
    /// The unit of the quantity's readings.
    unit: Unit,
    /// The unit that a typed number has by default.
    default_unit: &'static str,
    /// The accepted units, as listed in error messages.
    units: &'static str,
    /// The ID of the metric that contains the maximum of this quantity, such as the total memory
    /// for the memory in use.
    maximum: Option<&'static str>,
    /// Returns the quantity of the GPUs in a row, or `None` if it is unknown.
    read: fn(&Rows<'_>, usize) -> Option<f64>,
}

static QUANTITIES: [Quantity; 6] = [
    Quantity {
        name: "utilization",
        unit: Unit::Percent,
        default_unit: "%",
        units: "%",
        maximum: None,
        read: |rows, row| rows.value(UTILIZATION, row),
    },
    Quantity {
        name: "memory",
        unit: Unit::Bytes,
        default_unit: "GiB",
        units: "%, MiB, GiB, TiB",
        maximum: Some(MEMORY_TOTAL),
        read: |rows, row| rows.value(MEMORY_USED, row),
    },
    Quantity {
        name: "left",
        unit: Unit::Bytes,
        default_unit: "GiB",
        units: "%, MiB, GiB, TiB",
        maximum: Some(MEMORY_TOTAL),
        read: |rows, row| Some(rows.value(MEMORY_TOTAL, row)? - rows.value(MEMORY_USED, row)?),
    },
    Quantity {
        name: "power",
        unit: Unit::Watts,
        default_unit: "W",
        units: "%, W, kW",
        maximum: Some(POWER_LIMIT),
        read: |rows, row| rows.value(POWER, row),
    },
    Quantity {
        name: "temperature",
        unit: Unit::Celsius,
        default_unit: "C",
        units: "C, F",
        maximum: None,
        read: |rows, row| rows.value(TEMPERATURE, row),
    },
    Quantity {
        name: "idle",
        unit: Unit::Seconds,
        default_unit: "min",
        units: "s, min, h, d",
        maximum: None,
        read: read_idle_time,
    },
];

fn read_idle_time(rows: &Rows<'_>, row: usize) -> Option<f64> {
    rows.idle_with_memory_s(row)
}

/// A function that returns `true` if a reading matches a number.
type Operator = fn(f64, f64) -> bool;

/// The operators. `>=` and `<=` come first, because they start like `>` and `<`.
const OPERATORS: [(&str, Operator); 5] = [
    (">=", |value, than| value >= than),
    ("<=", |value, than| value <= than),
    (">", |value, than| value > than),
    ("<", |value, than| value < than),
    ("=", |value, than| (value - than).abs() < f64::EPSILON),
];

#[derive(Debug, Clone, Copy)]
struct Comparison {
    quantity: &'static Quantity,
    operator: Operator,
    than: f64,
    /// Whether the number is a percentage of the quantity's maximum.
    is_share: bool,
}

impl Comparison {
    /// Parses a comparison. Returns `None` if the word is not a comparison.
    ///
    /// # Errors
    /// Returns a message that explains the mistake and how to correct it.
    fn parse(word: &str) -> Result<Option<Self>, String> {
        let at = word.find(['<', '>', '=']);
        let Some((name, rest)) = at.map(|at| word.split_at(at)) else {
            return Ok(None);
        };
        if name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let operator = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((sign, operator, rest.strip_prefix(sign)?)));
        let Some((sign, operator, right)) = operator else {
            return Ok(None);
        };
        let Some(quantity) = QUANTITIES
            .iter()
            .find(|quantity| quantity.name.starts_with(name))
        else {
            let names = QUANTITIES.each_ref().map(|quantity| quantity.name);
            let names = names.join(", ");
            return Err(format!(
                "{word}: unknown quantity {name}. Valid quantities: {names}."
            ));
        };
        // Exponents are not accepted. The web page parses the same grammar and does not accept them
        // either.
        let unit_at = right.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, unit) = right.split_at(unit_at.unwrap_or(right.len()));
        let number = digits.parse().map_err(|_| {
            format!("{word}: a number must follow {sign}, for example memory>80GiB.")
        })?;
        let amount = Amount {
            number,
            unit: unit.to_owned(),
        };
        let is_share = amount.unit == "%" && quantity.maximum.is_some();
        let than = if is_share {
            Some(amount.number)
        } else {
            quantity.convert_to_reading_unit(&amount)
        };
        let than = than.ok_or_else(|| {
            let (unit, units) = (amount.unit.to_lowercase(), quantity.units);
            format!("{word}: invalid unit {unit}. Valid units: {units}.")
        })?;
        Ok(Some(Self {
            quantity,
            operator: *operator,
            than,
            is_share,
        }))
    }

    /// Returns `true` if the reading in the row matches. A comparison with an absent reading never
    /// matches.
    fn matches_row(self, rows: &Rows<'_>, row: usize) -> bool {
        let value = if self.is_share {
            self.quantity.read_percent_of_maximum(rows, row)
        } else {
            (self.quantity.read)(rows, row)
        };
        value.is_some_and(|value| (self.operator)(value, self.than))
    }
}

impl Quantity {
    fn read_percent_of_maximum(&self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        Some((self.read)(rows, row)? / rows.value(self.maximum?, row)? * 100.0)
    }

    /// Converts an amount to the unit of the readings. Returns `None` if the amount has a unit of
    /// another quantity.
    fn convert_to_reading_unit(&self, amount: &Amount) -> Option<f64> {
        let Amount { number, unit } = amount;
        let unit = match (self.unit, unit.to_lowercase().as_str()) {
            (_, "") | (Unit::Bytes, "g") => self.default_unit.to_owned(),
            (Unit::Celsius, "f" | "°f") => return Some((number - 32.0) / 1.8),
            (_, unit) => unit.to_owned(),
        };
        let amount = Amount {
            number: *number,
            unit,
        };
        amount.convert_to(self.unit)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpumon_fleet::{Summary, model::Fleet};
    use serde::Deserialize;

    use super::*;
    use crate::fleet::nodes::{Sort, list_nodes};

    #[derive(Deserialize)]
    struct Cases {
        fleet: Fleet,
        means: Means,
        filters: Vec<FilterCase>,
        mistakes: Vec<Mistake>,
        selections: Vec<Selection>,
    }

    /// The mean utilization of each node and of the fleet, in percent; `None` if no GPU reports its
    /// utilization.
    #[derive(Deserialize)]
    struct Means {
        nodes: BTreeMap<String, Option<f64>>,
        fleet: f64,
    }

    #[derive(Deserialize)]
    struct FilterCase {
        typed: String,
        /// The visible rows, or `None` if all are visible.
        rows: Option<Vec<usize>>,
    }

    #[derive(Deserialize)]
    struct Mistake {
        typed: String,
        error: String,
    }

    /// The expected readings of all GPUs that match a filter.
    #[derive(Deserialize)]
    struct Selection {
        typed: String,
        gpus: u32,
        readings: BTreeMap<String, Option<f64>>,
        partial: Vec<String>,
    }

    fn read_cases() -> Cases {
        serde_json::from_str(include_str!("../../../fleet/filter-cases.json")).unwrap()
    }

    #[test]
    fn filters_match_same_rows_as_web_page() {
        let Cases { fleet, filters, .. } = read_cases();
        let rows = Rows::new(&fleet);
        let mut wrong = Vec::new();
        for FilterCase {
            typed,
            rows: expected,
        } in filters
        {
            let shown = Filter::parse(&typed).map(|filter| {
                let shown = filter.select_rows(&rows);
                shown.map(|shown| rows.select_rows(Some(&shown)).collect::<Vec<_>>())
            });
            if shown != Ok(expected.clone()) {
                wrong.push(format!("{typed}: {shown:?} instead of {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn invalid_filter_error_matches_web_page() {
        for Mistake { typed, error } in read_cases().mistakes {
            assert_eq!(Filter::parse(&typed).unwrap_err(), error, "{typed}");
        }
    }

    #[test]
    fn mean_utilization_ignores_gpus_without_reading() {
        let Cases { fleet, means, .. } = read_cases();
        let rows = Rows::new(&fleet);
        let lines = list_nodes(&rows, None, Sort::Name);
        let found = lines
            .iter()
            .map(|line| (line.escaped_node_name(), line.sum.value(UTILIZATION)))
            .collect();
        assert_eq!(means.nodes, found);
        let all = Summary::new(&rows, rows.select_rows(None));
        assert_eq!(all.value(UTILIZATION), Some(means.fleet));
    }

    #[test]
    fn sums_of_filtered_gpus_match_web_page() {
        let Cases {
            fleet, selections, ..
        } = read_cases();
        let rows = Rows::new(&fleet);
        for selection in selections {
            let shown = Filter::parse(&selection.typed).unwrap().select_rows(&rows);
            let sum = Summary::new(&rows, rows.select_rows(shown.as_deref()));
            assert_eq!(sum.gpus, selection.gpus, "{}", selection.typed);
            for (id, value) in &selection.readings {
                let is_partial = selection.partial.contains(id);
                assert_eq!(
                    (sum.value(id), sum.is_partial(id)),
                    (*value, is_partial),
                    "{} {id}",
                    selection.typed
                );
            }
        }
    }
}
