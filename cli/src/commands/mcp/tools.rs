//! Which tools there are.

use super::{
    events::Events, history::History, processes::Processes, status::Status, tool::Entry,
    usage::UsageOf,
};

/// All of them, what is asked most first.
pub(super) static TOOLS: [Entry; 5] = [
    Entry::of::<Status>(),
    Entry::of::<Processes>(),
    Entry::of::<History>(),
    Entry::of::<Events>(),
    Entry::of::<UsageOf>(),
];
