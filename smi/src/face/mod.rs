//! What can be typed in the face of nvidia-smi, for shells that complete it and for the manual.
//!
//! It is made of the tables by which words are read, and of what the helps say of them, so that nothing stands here a
//! second time. What is refused is left out.

mod told;

use super::{
    habit, help, log,
    options::{self, Asked, OPTIONS, Opt},
    query::{self, QueryKind},
    subcommand::{self, Typing},
    switches::{Switch, Takes, Values},
};

/// nvidia-smi itself, or one of its commands.
pub struct Face {
    /// `smi` for nvidia-smi itself.
    pub name: &'static str,
    /// What a command shows, as a sentence without its stop.
    pub about: String,
    /// What can be typed behind it.
    pub options: Vec<Word>,
}

/// An option.
pub struct Word {
    /// How it is typed, the short form first.
    pub spellings: Vec<&'static str>,
    /// What it does, as a sentence without its stop.
    pub about: String,
    /// Whether a value follows.
    pub takes: Takes,
    /// The values that a shell proposes.
    pub values: Proposed,
    /// The spellings that mean this behind plain `gpumon`, too.
    pub habit: Vec<&'static str>,
}

/// The values that there are.
#[derive(Debug, PartialEq, Eq)]
pub enum Proposed {
    /// Any.
    Any,
    /// The path of a file.
    File,
    /// One of these.
    One(Vec<String>),
    /// Any of these, separated by commas.
    Commas(Vec<String>),
    /// Any of these letters.
    Letters(Vec<String>),
}

/// nvidia-smi itself, and then its commands.
pub fn faces() -> Vec<Face> {
    let options = OPTIONS.iter().filter(|option| option.is_heeded()).map(own).collect();
    let itself = Face { name: "smi", about: String::new(), options };
    std::iter::once(itself).chain(subcommand::all().filter_map(|command| face(command.name, &command.typing))).collect()
}

/// A command, unless all that it could show is refused: which GPUs it is about, and its help, are then all that is left.
fn face(name: &'static str, typing: &Typing) -> Option<Face> {
    let is_refused = |switch: &&Switch| typing.refused.iter().any(|some| some.contains(&switch.spellings[0]));
    let heeded: Vec<&Switch> = typing.switches.iter().filter(|switch| !is_refused(switch)).collect();
    let shows = heeded.iter().any(|switch| !["-i", "-h"].contains(&switch.spellings[0]));
    shows.then(|| Face {
        name,
        about: told::headline(typing.head),
        options: heeded.into_iter().map(|switch| typed(switch, typing.usage)).collect(),
    })
}

/// A switch of a command.
fn typed(switch: &Switch, usage: &str) -> Word {
    Word {
        spellings: switch.spellings.to_vec(),
        about: told::of_switch(usage, switch.spellings).unwrap_or_default(),
        takes: switch.takes,
        values: match switch.values {
            Values::Any => Proposed::Any,
            Values::File => Proposed::File,
            Values::One(words) => Proposed::One(words.iter().map(|word| (*word).to_owned()).collect()),
            Values::Commas(words) => Proposed::Commas(words()),
            Values::Letters(letters) => Proposed::Letters(letters.chars().map(String::from).collect()),
        },
        habit: Vec::new(),
    }
}

/// An option of nvidia-smi itself.
fn own(option: &Opt) -> Word {
    let spellings = option.spellings();
    let about = match option.asked {
        Asked::HelpQuery => format!("What --{} knows", spellings[0].trim_start_matches("--help-")),
        _ => told::of_option(&help::text(), &spellings).unwrap_or_default(),
    };
    let owned = |words: &mut dyn Iterator<Item = &'static str>| words.map(str::to_owned).collect();
    let values = match option.asked {
        Asked::File => Proposed::File,
        Asked::Sections => Proposed::Commas(owned(&mut log::section_words())),
        Asked::Format => Proposed::Commas(owned(&mut query::modifiers())),
        Asked::Query => Proposed::Commas(owned(&mut fields(&spellings).into_iter().flat_map(|field| field.names))),
        _ => Proposed::Any,
    };
    let takes = match option.value {
        options::Value::None => Takes::Nothing,
        options::Value::Required => Takes::Value,
        options::Value::Optional => Takes::PerhapsValue,
    };
    let habit = spellings.iter().copied().filter(|spelling| !habit::is_shared(option.asked, spelling)).collect();
    Word { spellings, about, takes, values, habit }
}

/// The fields that an option asks for; none where it asks for none.
pub fn fields(spellings: &[&'static str]) -> Vec<query::Told> {
    let query = QueryKind::ALL.into_iter().find(|query| spellings.contains(&query.switch()));
    query.map_or_else(Vec::new, query::fields)
}

#[cfg(test)]
mod tests;
