//! `warprow new`: the files of the project. CI builds one and runs its tests.

use super::{Folder, root};

#[test]
fn a_project_has_its_name_and_the_sources_of_warprow() {
    let folder = Folder::new();
    let sources = root().canonicalize().unwrap();
    let path = sources.to_string_lossy();
    let text = folder.printed(&["new", "my-kernels", "--path", &path]);
    assert!(text.contains("cd my-kernels"), "{text}");
    let read = |name: &str| std::fs::read_to_string(folder.path("my-kernels").join(name)).unwrap();
    assert!(read("Cargo.toml").contains(&format!("path = \"{path}\"")));
    assert!(read("kernels/Cargo.toml").contains(&format!("path = \"{path}/rust-cuda/cuda_std\"")));
    assert!(read("src/main.rs").contains("my_kernels::open()"));
    assert!(read("tests/kernels.rs").contains("use my_kernels::"));
    assert!(read("tests/kernels.rs").contains("fn vectors_on_two_devices_are_refused()"));
    assert!(read("src/lib.rs").contains("assert_eq!(x.device(), y.device(), "));
    // It is not published there.
    assert!(!read("README.md").contains("docs.rs"));
    // Not again.
    let found = folder.refused(&["new", "my-kernels", "--path", &path], 2);
    assert!(
        found.contains("cannot write my-kernels: File exists"),
        "{found}"
    );
}

#[test]
fn a_project_without_a_source_or_with_a_wrong_one_is_refused() {
    let folder = Folder::new();
    folder.refused(&["new", "my-kernels"], 2);
    folder.refused(
        &["new", "My Kernels", "--git", "https://example.org/w.git"],
        2,
    );
    for (url, shown) in [("", "``"), ("a\nb", "`a\\nb`")] {
        let found = folder.refused(&["new", "my-kernels", "--git", url], 2);
        let wanted = format!(
            "--git: wanted the URL of a repository without control characters, found {shown}"
        );
        assert!(found.contains(&wanted), "{found}");
    }
    let found = folder.refused(&["new", "fn", "--git", "https://example.org/w.git"], 2);
    assert!(found.contains("found `fn`, a keyword of Rust"), "{found}");
    let found = folder.refused(&["new", "my-kernels", "--path", "."], 2);
    assert!(found.contains("Cargo.toml: No such file"), "{found}");
    folder.write("Cargo.toml", "[package]\nname = \"other\"\n");
    let found = folder.refused(&["new", "my-kernels", "--path", "."], 2);
    assert!(found.contains("found another package"), "{found}");
}
