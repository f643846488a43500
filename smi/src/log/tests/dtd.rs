//! Tests that all output matches the DTD, and that the DTD declares all elements in NVIDIA's DTD.

use std::collections::{HashMap, HashSet};

use super::{
    boards::{
        add_blackwell, add_divided_h200, add_hopper, add_lost_gpu, add_virtual_gpu_host, add_volta,
        driver_580, driver_with_version,
    },
    make_context,
};
use crate::{
    log::{build_gpu_dtd, render_xml_log, xml::Dtd},
    release::Release,
};

/// The releases whose elements are known or have been guessed.
const RELEASES: [&str; 4] = ["580.159.04", "590.48.01", "595.71.05", "610.57.04"];

fn parse_release(version: &str) -> Release {
    version.parse().unwrap()
}

#[test]
fn vendor_dtd_elements_are_declared_once() {
    let dtd = build_gpu_dtd(parse_release(RELEASES[0]));
    let ours: HashSet<_> = dtd.elements().iter().map(|(tag, _)| tag.as_str()).collect();
    assert_eq!(
        ours.len(),
        dtd.elements().len(),
        "an element is declared in two ways"
    );
    let missing: Vec<_> = include_str!("elements.txt")
        .lines()
        .filter(|tag| !ours.contains(tag))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_child_element_in_dtd_is_declared() {
    for dtd in RELEASES.map(|version| build_gpu_dtd(parse_release(version))) {
        let tags: HashSet<_> = dtd.elements().iter().map(|(tag, _)| tag.as_str()).collect();
        for (tag, model) in dtd.elements() {
            for child in element_names(model).filter(|child| *child != "#PCDATA") {
                assert!(
                    tags.contains(child.trim_end_matches(['?', '*'])),
                    "{tag} holds {child}"
                );
            }
        }
    }
}

#[test]
fn every_board_document_is_valid() {
    for version in RELEASES {
        let driver = || driver_with_version(version);
        let scripts = [
            add_hopper(driver(), 0),
            add_divided_h200(driver()),
            add_volta(driver()),
            add_blackwell(driver()),
            add_virtual_gpu_host(driver()),
            add_lost_gpu(driver(), 0),
            driver(),
        ];
        let dtd = build_gpu_dtd(parse_release(version));
        for (board, script) in scripts.iter().enumerate() {
            let document = render_xml_log(&make_context(script, &[0]), false);
            check_document(&dtd, &document)
                .unwrap_or_else(|error| panic!("board {board} of {version}: {error}"));
        }
        check_document(&dtd, &render_xml_log(&make_context(&driver(), &[]), false)).unwrap();
    }
}

#[test]
fn document_of_other_release_is_invalid() {
    let document = render_xml_log(
        &make_context(&add_hopper(driver_with_version("610.57.04"), 0), &[0]),
        false,
    );
    check_document(&build_gpu_dtd(parse_release("595.71.05")), &document).unwrap_err();
}

#[test]
fn invalid_document_is_detected() {
    let script = add_hopper(driver_580(), 0);
    let document = render_xml_log(&make_context(&script, &[0]), false);
    let unordered = document
        .replace("<uuid>", "<pdi>")
        .replace("</uuid>", "</pdi>");
    let unknown = document.replace("egm>", "gem>");
    let text_among_elements = document.replace("<capabilities>", "<capabilities>words");
    for broken in [unordered, unknown, text_among_elements] {
        check_document(&build_gpu_dtd(parse_release(RELEASES[0])), &broken).unwrap_err();
    }
}

/// Checks that a document matches the DTD. The parser supports only elements, attributes and text.
pub(crate) fn check_document(dtd: &Dtd, document: &str) -> Result<(), String> {
    let models: HashMap<&str, &str> = dtd
        .elements()
        .iter()
        .map(|(tag, model)| (tag.as_str(), model.as_str()))
        .collect();
    let mut open: Vec<(&str, Vec<&str>, bool)> = vec![("", Vec::new(), false)];
    for piece in document
        .split('<')
        .skip(1)
        .filter(|piece| !piece.starts_with(['?', '!']))
    {
        let (tag, behind) = piece.split_once('>').ok_or("a tag has no end")?;
        if let Some(tag) = tag.strip_prefix('/') {
            let (opened, children, has_text) = open.pop().ok_or("more ends than beginnings")?;
            if opened != tag {
                return Err(format!("{opened} ends as {tag}"));
            }
            let model = models
                .get(tag)
                .ok_or_else(|| format!("{tag} is not declared"))?;
            check_children(model, &children, has_text)
                .map_err(|error| format!("{tag}: {error}"))?;
        } else {
            let tag = tag.split(' ').next().unwrap_or_default();
            open.last_mut().ok_or("nothing is open")?.1.push(tag);
            open.push((tag, Vec::new(), false));
        }
        open.last_mut().ok_or("nothing is open")?.2 |= !behind.trim().is_empty();
    }
    if open.len() == 1 {
        Ok(())
    } else {
        Err("more beginnings than ends".to_owned())
    }
}

/// Checks that an element's content model allows `children`. A model contains either text mixed
/// with elements, or elements in a fixed order.
fn check_children(model: &str, children: &[&str], has_text: bool) -> Result<(), String> {
    if model.contains("#PCDATA") {
        let allowed: HashSet<_> = element_names(model).collect();
        return children
            .iter()
            .find(|child| !allowed.contains(*child))
            .map_or(Ok(()), |child| Err((*child).to_owned()));
    }
    if has_text {
        return Err("text among elements".to_owned());
    }
    let mut left = children.iter().peekable();
    for expected in element_names(model) {
        let name = expected.trim_end_matches(['?', '*']);
        let mut found = left.next_if(|child| **child == name).is_some();
        if found && expected.ends_with('*') {
            while left.next_if(|child| **child == name).is_some() {}
        }
        found |= expected.ends_with(['?', '*']);
        if !found {
            return Err(format!("{name} is missing"));
        }
    }
    left.next()
        .map_or(Ok(()), |child| Err(format!("{child} is out of place")))
}

fn element_names(model: &str) -> impl Iterator<Item = &str> {
    model
        .trim_end_matches('*')
        .trim_matches(['(', ')'])
        .split([',', '|'])
        .map(str::trim)
}
