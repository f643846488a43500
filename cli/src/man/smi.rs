//! The sections of the manual page of `gpumon smi`: the options of nvidia-smi and of each of its
//! commands.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use gpumon_smi::{
    Arity,
    cli_spec::{self, CommandSpec, OptionSpec, ValueHint, list_commands},
};

use super::add_paragraph;

/// Adds sections for nvidia-smi's options, for each of its commands, and for the fields of each
/// query.
pub(crate) fn add_smi_sections(page: &mut Roff) {
    let commands = list_commands();
    for command in &commands {
        if command.name == "smi" {
            page.control("SH", ["ARGUMENTS OF NVIDIA-SMI"]);
        } else {
            page.control(
                "SH",
                [format!("GPUMON SMI {}", command.name.to_uppercase()).as_str()],
            );
            add_paragraph(page, &format!("{}.", command.about));
        }
        command
            .options
            .iter()
            .for_each(|option| add_option(page, option));
    }
    add_query_fields(page, &commands[0]);
}

/// Adds an option with its description and values. The fields of queries are in a separate section.
fn add_option(page: &mut Roff, option: &OptionSpec) {
    page.control("TP", []);
    let mut term: Vec<Inline> = Vec::new();
    for (place, spelling) in option.spellings.iter().enumerate() {
        term.extend((place > 0).then(|| roman(", ")));
        term.push(bold(*spelling));
    }
    match option.arity {
        Arity::None => {}
        Arity::Required => term.extend([roman(" "), italic("VALUE")]),
        Arity::Optional => term.extend([roman(" ["), italic("VALUE"), roman("]")]),
    }
    page.text(term);
    add_paragraph(page, &format!("{}.", option.about));
    let has_section = !cli_spec::list_fields(&option.spellings).is_empty();
    match &option.values {
        ValueHint::One(words) => add_paragraph(page, &format!("One of: {}.", words.join(", "))),
        ValueHint::Commas(words) if !has_section => {
            add_paragraph(page, &format!("They are: {}.", words.join(", ")));
        }
        ValueHint::Letters(letters) => {
            add_paragraph(page, &format!("Any of the letters {}.", letters.join(", ")));
        }
        ValueHint::Any | ValueHint::File | ValueHint::Commas(_) => {}
    }
}

fn add_query_fields(page: &mut Roff, itself: &CommandSpec) {
    for option in &itself.options {
        let fields = cli_spec::list_fields(&option.spellings);
        let (false, Some(switch)) = (fields.is_empty(), option.spellings.first()) else {
            continue;
        };
        page.control("SH", [format!("FIELDS OF {switch}").as_str()]);
        for field in fields {
            page.control("TP", []);
            page.text([bold(field.names.join(", "))]);
            field
                .about
                .lines()
                .for_each(|line| add_paragraph(page, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_options_values_commands_and_fields() {
        let mut page = Roff::new();
        add_smi_sections(&mut page);
        let text = page.render();
        for reported in [
            ".SH \"ARGUMENTS OF NVIDIA-SMI\"",
            "\\fB\\-q\\fR, \\fB\\-\\-query\\fR\n",
            "\\fB\\-d\\fR, \\fB\\-\\-display\\fR \\fIVALUE\\fR",
            "They are: MEMORY, UTILIZATION, ECC,",
            ".SH \"GPUMON SMI DMON\"",
            "Any of the letters p, u, c, v, m, e, t.",
            "One of: r, w, n, a, p.",
            ".SH \"FIELDS OF --query-gpu\"",
            "\\fBclocks.current.graphics, clocks.gr\\fR",
        ] {
            assert!(text.contains(reported), "{reported} is not in\n{text}");
        }
        assert!(
            !text.contains("\\fB\\-\\-power\\-limit"),
            "what is refused is not told"
        );
    }
}
