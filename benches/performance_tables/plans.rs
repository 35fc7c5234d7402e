//! What plans cost, and how good their choices are.

use super::{Site, assert_all_in, planted, planted_for};

#[test]
fn a_plan_that_never_pays_says_so() {
    let site = Site::with(&["spmm_plan"]);
    let ours = r#""ms":2.0,"ok":true,"plan_ms":5.0,"first_plan_ms":5.0,"upload_ms":70.0"#;
    let theirs = r#""ms":1.5,"ok":true,"plan_ms":0.1,"first_plan_ms":0.1"#;
    site.write(
        "spmm.jsonl",
        &[
            planted("warprow", ours),
            planted("cusparse_default", theirs),
        ],
    );
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(&text, &["| second | never | never | 1 | 1 |"]);
}

#[test]
fn good_choices_of_the_sweep_are_counted_and_bad_ones_are_listed() {
    let timed = |graph, implementation, ms: &str| {
        let outcome = format!(r#""ms":{ms},"ok":true"#);
        planted_for(graph, 32, implementation, &outcome)
    };
    let site = Site::with(&["spmm_choices"]);
    site.write(
        "spmm_choices.jsonl",
        &[
            timed("ppa", "warprow", "1.04"),
            timed("ppa", "lanes_8", "1.0"),
            timed("ppa", "cusparse_default", "0.5"),
            timed("ddi", "warprow", "1.25"),
            timed("ddi", "in_step", "1.0"),
            timed("am", "warprow", "1.0"),
        ],
    );
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "In 2 cases the bench also timed",
            "within 5 % of the best one in 1 cases.",
            "| ddi, rmat57, f32, 32 | some_kernel | in_step | 0.80 |",
        ],
    );
}
