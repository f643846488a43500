//! The tree view of processes and their ancestors.

use std::collections::{HashMap, HashSet};

use gpumon_probe::model::Ancestor;

use super::rows::{Row, Subject};

/// Arranges sorted rows as a tree. Ancestors, such as shells, tmux, and sshd, get additional rows.
/// Siblings keep their order.
pub(super) fn arrange_as_tree(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let holders: HashSet<u32> = rows.iter().map(find_pid).collect();
    let mut below: HashMap<Option<u32>, Vec<Node<'_>>> = HashMap::new();
    let mut placed = HashSet::new();
    for row in rows {
        let line = list_ancestors(&row);
        let above = line.first().map(|parent| parent.pid);
        for (place, parent) in line.iter().enumerate() {
            if !holders.contains(&parent.pid) && placed.insert(parent.pid) {
                let above = line.get(place + 1).map(|parent| parent.pid);
                let subject = Subject::Parents(vec![parent]);
                let row = Row {
                    gpu: row.gpu,
                    part: None,
                    subject,
                    notebook: None,
                    total_bytes: None,
                    usage: None,
                    depth: 0,
                };
                below.entry(above).or_default().push(Node {
                    pid: parent.pid,
                    row,
                });
            }
        }
        below.entry(above).or_default().push(Node {
            pid: find_pid(&row),
            row,
        });
    }
    let mut grown = Vec::new();
    append_children(None, 0, &mut below, &mut grown);
    grown
}

struct Node<'a> {
    pid: u32,
    row: Row<'a>,
}

fn append_children<'a>(
    parent: Option<u32>,
    depth: usize,
    below: &mut HashMap<Option<u32>, Vec<Node<'a>>>,
    grown: &mut Vec<Row<'a>>,
) {
    let nodes = below.remove(&parent).unwrap_or_default();
    let mut nodes = nodes.into_iter().peekable();
    while let Some(Node { mut pid, mut row }) = nodes.next() {
        // If the only child of an ancestor is also an ancestor, both share a row, which leaves more
        // room for processes.
        while let (
            Subject::Parents(line),
            Some(
                [
                    Node {
                        pid: only,
                        row:
                            Row {
                                subject: Subject::Parents(next),
                                ..
                            },
                    },
                ],
            ),
        ) = (&mut row.subject, below.get(&Some(pid)).map(Vec::as_slice))
        {
            line.extend(next);
            below.remove(&Some(std::mem::replace(&mut pid, *only)));
        }
        grown.push(Row { depth, ..row });
        // The children of a process that has several rows follow its last row.
        if nodes.peek().is_none_or(|next| next.pid != pid) {
            append_children(Some(pid), depth + 1, below, grown);
        }
    }
}

fn find_pid(row: &Row<'_>) -> u32 {
    match row.subject {
        Subject::Process(process) => process.pid,
        Subject::Parents(ref line) => line.last().map_or(0, |parent| parent.pid),
    }
}

fn list_ancestors<'a>(row: &Row<'a>) -> &'a [Ancestor] {
    match row.subject {
        Subject::Process(process) => process.owner.value().map_or(&[], |owner| &owner.parents),
        Subject::Parents(_) => &[],
    }
}
