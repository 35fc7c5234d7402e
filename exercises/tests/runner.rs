//! The runner as a learner uses it: from the delivered file to the solution.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use exercises::description::{ATTEMPTS, ROOT};

/// A learner with a folder of its own.
struct Learner(PathBuf);

impl Learner {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    /// Whether the runner succeeds, and what it prints.
    fn runs(&self, arguments: &[&str]) -> (bool, String) {
        let ran = Command::new(env!("CARGO_BIN_EXE_exercises"))
            .args(arguments)
            .env(ATTEMPTS, &self.0)
            .output()
            .expect("the runner starts");
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (ran.status.success(), text)
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str], message: &str) {
        let (succeeds, text) = self.runs(arguments);
        assert!(succeeds, "{text}");
        assert!(text.contains(message), "{message:?} is not in:\n{text}");
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], message: &str) {
        let (succeeds, text) = self.runs(arguments);
        assert!(!succeeds, "{text}");
        assert!(text.contains(message), "{message:?} is not in:\n{text}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

#[test]
fn a_learner_solves_the_first_exercise() {
    let learner = Learner::new("solves");
    learner.succeeds(&[], "The next exercise is 01_hello");
    learner.fails(&["check"], "at x[1] of 1 f32 (parameter x)");
    learner.fails(&["solution", "hello"], "does not pass yet");
    learner.succeeds(&["hint", "1"], "Hint 1 of 3");
    learner.succeeds(&["hint", "1"], "Hint 2 of 3");

    let attempt = learner.file("01_hello.rs");
    fs::write(&attempt, "pub fn double() -> u32 { true }").expect("the folder is there");
    learner.fails(&["check"], "mismatched types");
    let solution = Path::new(ROOT).join("01_hello/solution.rs");
    fs::copy(solution, &attempt).expect("the solution is there");
    learner.succeeds(&["check"], "The next exercise is 02_grid_stride");
    learner.succeeds(&["solution", "hello"], "if i < n as usize");
    learner.succeeds(&["list"], "passed  01_hello");

    learner.succeeds(&["reset", "hello"], "as it was delivered");
    let problem = Path::new(ROOT).join("01_hello/problem.rs");
    let [delivered, reset] = [problem, attempt].map(|path| fs::read(path).expect("it is there"));
    assert_eq!(delivered, reset);
    learner.succeeds(&[], "0 of");
}

#[test]
fn a_check_draws_a_picture_of_a_race() {
    let learner = Learner::new("race");
    learner.fails(&["check", "block_sum"], "Picture: ");
    let picture = fs::read_to_string(learner.file("05_block_sum.svg")).expect("it is drawn");
    assert!(picture.contains("Race on shared memory"), "{picture}");
}

#[test]
fn names_that_mean_no_exercise_or_several_are_refused() {
    let learner = Learner::new("names");
    learner.fails(&["check", "nothing"], "no exercise is called \"nothing\"");
    learner.fails(
        &["check", "sum"],
        "\"sum\" can be 05_block_sum or 06_warp_sum",
    );
    learner.succeeds(&["solution", "10", "--give-up"], "10_spmv/solution.rs");
}
