//! Process names in condition texts.

use crate::model::{Process, Reading};

/// The maximum length of a name in a text.
const MAX_NAME_CHARS: usize = 60;

/// Returns the name of the notebook or program and its user, such as `train.ipynb (ana)`.
pub(super) fn process_name(process: &Process) -> String {
    let notebook = process
        .owner
        .value()
        .and_then(|owner| owner.notebook.as_ref()?.path.value());
    // The notebook's folders are omitted, because this text is also visible to users who may not
    // see command lines.
    let notebook = notebook.and_then(|path| path.rsplit('/').next());
    let program = notebook.or(process.name.value().map(String::as_str));
    let program = program.map_or_else(|| format!("process {}", process.pid), clean_name);
    match &process.user {
        Reading::Now(user) | Reading::Earlier { value: user, .. } => {
            format!("{program} ({})", clean_name(user))
        }
        Reading::Absent(_) => program,
    }
}

/// Removes control characters, because names are untrusted text, and truncates long names at the
/// start.
fn clean_name(name: &str) -> String {
    let letters: Vec<char> = name.chars().filter(|letter| !letter.is_control()).collect();
    match letters.len().checked_sub(MAX_NAME_CHARS) {
        None | Some(0) => letters.into_iter().collect(),
        Some(more) => std::iter::once('…')
            .chain(letters[more..].iter().copied())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Notebook, Owner},
    };

    #[test]
    fn process_name_has_notebook_or_program_and_user() {
        let mut notebook = examples::make_process(1, 0);
        notebook.owner = Reading::Now(Owner {
            notebook: Some(Notebook {
                kernel_id: "k".into(),
                kernel_name: None,
                path: Reading::Now("work/a.ipynb".into()),
                kernel_pid: 1,
            }),
            ..Owner::default()
        });
        let mut stranger = examples::make_process(2, 0);
        stranger.user = Reading::Absent(Absence::Hidden);
        let mut nameless = stranger.clone();
        nameless.name = Reading::Absent(Absence::NoPermission);
        assert_eq!(
            [&notebook, &stranger, &nameless].map(process_name),
            ["a.ipynb (ana)", "train.py", "process 2"]
        );
        stranger.name = Reading::Now(format!("\x1b[2J{}end", "x".repeat(500)));
        let name = process_name(&stranger);
        assert_eq!(name.chars().count(), MAX_NAME_CHARS + 1);
        assert!(name.ends_with("end") && !name.contains('\x1b'), "{name}");
    }
}
