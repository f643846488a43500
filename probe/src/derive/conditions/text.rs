//! Lists and names of processes as people read them.

use crate::model::{Process, Reading};

/// A file can have a long name.
const LONGEST_NAME: usize = 60;

/// So many names say who it is; more are counted.
const MOST_NAMES: usize = 3;

/// As `1, 2 and 3`.
pub(super) fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// As `train.ipynb (ana), serve.py and 2 more`: the notebook or the program, and whose it is.
pub(super) fn process_names(processes: &[&Process]) -> String {
    let mut names: Vec<String> = processes
        .iter()
        .take(MOST_NAMES)
        .map(|process| name(process))
        .collect();
    if processes.len() > MOST_NAMES {
        names.push(format!(
            "{} more",
            processes.len().saturating_sub(MOST_NAMES)
        ));
    }
    list(&names)
}

fn name(process: &Process) -> String {
    let notebook = process
        .owner
        .value()
        .and_then(|owner| owner.notebook.as_ref()?.path.value());
    // Its folders are for those who may see command lines, and this text is for everybody.
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

/// Names are text from strangers. Of a long one the end says most.
fn clean_name(name: &str) -> String {
    let letters: Vec<char> = name.chars().filter(|letter| !letter.is_control()).collect();
    match letters.len().checked_sub(LONGEST_NAME) {
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
    fn lists_are_joined_by_commas_and_and() {
        assert_eq!(
            [
                list::<u32>(&[]),
                list(&[1]),
                list(&[1, 2]),
                list(&[1, 2, 3])
            ],
            ["", "1", "1 and 2", "1, 2 and 3"]
        );
    }

    #[test]
    fn processes_are_named_by_notebook_or_program_and_user() {
        let mut notebook = examples::process(1, 0);
        notebook.owner = Reading::Now(Owner {
            notebook: Some(Notebook {
                kernel_id: "k".into(),
                kernel_name: None,
                path: Reading::Now("work/a.ipynb".into()),
                kernel_pid: 1,
            }),
            ..Owner::default()
        });
        let mut stranger = examples::process(2, 0);
        stranger.user = Reading::Absent(Absence::Hidden);
        let mut nameless = stranger.clone();
        nameless.name = Reading::Absent(Absence::NoPermission);
        assert_eq!(
            process_names(&[&notebook, &stranger, &nameless]),
            "a.ipynb (ana), train.py and process 2"
        );
        assert_eq!(
            process_names(&[&stranger; 5]),
            "train.py, train.py, train.py and 2 more"
        );
        stranger.name = Reading::Now(format!("\x1b[2J{}end", "x".repeat(500)));
        let name = process_names(&[&stranger]);
        assert_eq!(name.chars().count(), LONGEST_NAME + 1);
        assert!(name.ends_with("end") && !name.contains('\x1b'), "{name}");
    }
}
