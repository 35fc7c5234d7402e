//! Every solution passes. Every delivered file and every wrong solution fails, with the message that is promised.

#![allow(
    clippy::duplicate_mod,
    reason = "each attempt is compiled with the case of its exercise"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use exercises::Case;
use exercises::check::check;
use exercises::description::{Exercise, ROOT};
use exercises::list::EXERCISES;
use exercises::verdict::Rejection;

include!(concat!(env!("OUT_DIR"), "/tests.rs"));

#[track_caller]
fn open(name: &str) -> Exercise {
    Exercise::open(name).unwrap_or_else(|error| panic!("{error}"))
}

/// The rejection of an attempt, whose message must have the part `message`.
#[track_caller]
fn rejection(exercise: &Exercise, case: Case, message: &str) -> Box<Rejection> {
    let rejection = check(exercise, case).expect_err("the attempt passes");
    let text = rejection.failure.to_string();
    assert!(
        text.contains(message),
        "{message:?} is not in:\n{rejection}"
    );
    rejection
}

#[test]
fn each_exercise_is_named_in_its_chapter() {
    let chapters = Path::new(ROOT).join("../book/chapters");
    for name in EXERCISES {
        let number = format!("{:02}-", open(name).description.chapter);
        let chapter = fs::read_dir(&chapters)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| {
                path.file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with(&number)
            })
            .unwrap_or_else(|| panic!("{name}: no chapter {number}"));
        let link = format!("exercises/{name}/problem.rs");
        assert!(
            fs::read_to_string(&chapter).unwrap().contains(&link),
            "{link} in {chapter:?}"
        );
    }
}

fn solution(name: &str, case: Case) {
    if let Err(rejection) = check(&open(name), case) {
        panic!("{rejection}");
    }
}

fn wrong(name: &str, variant: &str, case: Case) {
    let exercise = open(name);
    let message = exercise.description.wrong.get(variant);
    let message = message.unwrap_or_else(|| panic!("exercise.toml has no message of {variant}"));
    rejection(&exercise, case, message);
}

fn delivered(name: &str, case: Case) {
    let exercise = open(name);
    let delivered = &exercise.description.delivered;
    let rejection = rejection(&exercise, case, &delivered.message);
    let text = fs::read_to_string(exercise.path("problem.rs")).expect("the problem has a text");
    let promised = text.lines().filter(|line| line.starts_with("//!"));
    let promised: Vec<&str> = promised.map(|line| line[3..].trim()).collect();
    let promised = promised.join(" ");
    assert!(
        promised.contains(&delivered.message),
        "the text of the exercise does not promise {:?}",
        delivered.message
    );
    let found = rejection.failure.location().map(|(_, line)| line);
    let lines = (1..).zip(text.lines());
    let wanted: Vec<u32> = match &delivered.at {
        None => return,
        Some(at) => lines
            .filter(|(_, line)| line.contains(at) && !line.starts_with("//!"))
            .map(|(line, _)| line)
            .collect(),
    };
    assert_eq!(wanted.len(), 1, "one line has {:?}", delivered.at);
    assert_eq!(found, wanted.first().copied(), "{rejection}");
}

#[test]
fn the_list_has_all_folders_and_each_has_hints_and_wrong_solutions() {
    let folders = fs::read_dir(ROOT).expect("the package has a folder");
    let names = folders.map(|entry| entry.expect("a readable folder").file_name());
    let folders: BTreeSet<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    let listed: Vec<&str> = folders.iter().map(String::as_str).collect();
    assert_eq!(listed, EXERCISES, "src/list.rs lists the folders in order");
    for name in EXERCISES {
        let description = open(name).description;
        assert!(
            (2..=3).contains(&description.hints.len()),
            "hints of {name}"
        );
        let files = fs::read_dir(Path::new(ROOT).join(name).join("wrong")).expect("a folder");
        assert_eq!(
            files.count(),
            description.wrong.len(),
            "wrong solutions of {name}"
        );
        assert!(description.wrong.len() >= 2, "wrong solutions of {name}");
    }
}
