//! Any text as a patch, on a few files in memory: read, planned, checked and shown, and the same as part
//! of a command. The first line is the contents of the files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandgate_patch::{Files, Found, Look, LookError, Patch, Plan, Roots, Section, from_script};
use sandgate_protocol::WritableRoot;
use std::path::Path;

struct Same<'a>(&'a [u8]);

impl Files for Same<'_> {
    fn look(&self, path: &Path) -> Result<Look, LookError> {
        let found = match path.to_str() {
            Some("/work" | "/work/dir") => Found::Directory,
            Some("/work/a" | "/work/dir/b") => Found::File(self.0.to_vec()),
            _ => Found::Nothing,
        };
        Ok(Look { real: path.to_owned(), through_link: false, found })
    }
}

/// A patch that is written out anew has its lines elsewhere.
fn without_numbers(mut patch: Patch) -> Patch {
    for section in &mut patch.sections {
        match section {
            Section::Add { at, .. } | Section::Delete { at, .. } => *at = 0,
            Section::Update { at, hunks, .. } => {
                *at = 0;
                hunks.iter_mut().for_each(|hunk| hunk.at = 0);
            }
        }
    }
    patch
}

fuzz_target!(|text: &str| {
    let (contents, text) = text.split_once('\n').unwrap_or(("one", text));
    let contents = contents.replace('\u{1}', "\n");
    let _ = from_script(&["bash", "-lc", text].map(str::to_owned));
    let Ok(patch) = text.parse::<Patch>() else { return };
    let again = patch.to_string().parse::<Patch>().map(without_numbers);
    assert_eq!(again, Ok(without_numbers(patch.clone())), "{text:?}");
    let Ok(plan) = Plan::of(&patch, Path::new("/work"), &Same(contents.as_bytes())) else { return };
    let root = WritableRoot { path: "/work".into(), read_only_subpaths: Vec::new() };
    let outside = plan.check(&Roots::new([root], []));
    let escapes = |path: &Path| !path.starts_with("/work");
    let written = plan.changes.iter().flat_map(|change| change.written());
    assert!(
        written.filter(|path| escapes(path)).all(|path| outside.iter().any(|one| one.path == path))
    );
    let _ = (plan.diff(), plan.summary(), plan.counts());
});
