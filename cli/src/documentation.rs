//! `docs/command.md` is made of the table of subcommands and their help.

use crate::commands::Arguments;
use clap::CommandFactory;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/command.md");

/// The line after which all text is generated.
const GENERATED: &str =
    "<!-- The rest is generated: WARPROW_UPDATE_DOCS=1 cargo test -p warprow-cli --bins -->\n";

/// The help of every subcommand, as wide as a page.
fn generated() -> String {
    let mut command = Arguments::command();
    command.build();
    let mut text = String::new();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|subcommand| subcommand.get_name().to_owned())
        .collect();
    for name in names.iter().filter(|name| *name != "help") {
        let subcommand = command
            .find_subcommand_mut(name)
            .expect("it is of the list");
        // Other crates of a build decide whether clap breaks lines; here it never does.
        *subcommand = std::mem::take(subcommand).term_width(0);
        let help = subcommand.render_help().to_string();
        let help = crate::terminal::wrapped_help(&help, 116);
        text.push_str(&format!("\n## warprow {name}\n\n```text\n{}```\n", help));
    }
    text
}

#[test]
fn the_page_is_that_of_the_help_texts() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (written, found) = page
        .split_once(GENERATED)
        .expect("the page has the line of what is generated");
    let wanted = generated();
    if std::env::var_os("WARPROW_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, format!("{written}{GENERATED}{wanted}")).unwrap();
    } else {
        assert!(
            found == wanted,
            "docs/command.md is not that of the help texts; run with WARPROW_UPDATE_DOCS=1"
        );
    }
}
