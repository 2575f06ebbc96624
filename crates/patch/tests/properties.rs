//! What holds for every patch, whoever wrote it.

mod support;

use proptest::prelude::*;
use sandgate_patch::{Disk, FileChange, Hunk, HunkLine, Patch, Plan, Section, from_script};
use std::path::Path;
use support::{BASE, InMemory};

/// A line of a file, without its end. Few different ones, so that they repeat.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ab]{0,2}",
        1 => "[ \t]{0,2}[a-c@*+ -]{0,6}[ \t]{0,2}",
        1 => "[^\r\n]{0,8}",
        1 => "[ab\r]{0,3}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]",
        "[ab]/[ab]",
        Just("../x".to_owned()),
        Just("/etc/x".to_owned()),
        Just("link/x".to_owned()),
        Just("out/victim".to_owned()),
        Just("innocent".to_owned()),
        Just("inside/x".to_owned()),
        Just(".git/config".to_owned()),
        Just("a/../../outside/victim".to_owned()),
        "[a-z/.]{1,6}[a-z]",
    ]
}

fn hunk() -> impl Strategy<Value = Hunk> {
    let hunk_line = prop_oneof![
        line().prop_map(HunkLine::Keep),
        line().prop_map(HunkLine::Remove),
        line().prop_map(HunkLine::Add),
    ];
    // What follows `@@` is not blank, or it would not be anything.
    let context = line().prop_filter("not blank", |line| !line.trim().is_empty());
    let parts = (
        prop::collection::vec(context, 0..2),
        prop::collection::vec(hunk_line, 1..5),
        any::<bool>(),
    );
    parts.prop_map(|(contexts, lines, end_of_file)| Hunk { contexts, lines, end_of_file, at: 0 })
}

fn section() -> impl Strategy<Value = Section> {
    prop_oneof![
        (path(), prop::collection::vec(line(), 0..4)).prop_map(|(path, lines)| Section::Add {
            path,
            lines,
            at: 0
        }),
        path().prop_map(|path| Section::Delete { path, at: 0 }),
        (path(), prop::option::of(path()), prop::collection::vec(hunk(), 1..3))
            .prop_map(|(path, move_to, hunks)| Section::Update { path, move_to, hunks, at: 0 }),
    ]
}

fn patches() -> impl Strategy<Value = Patch> {
    prop::collection::vec(section(), 1..5).prop_map(|sections| Patch { sections })
}

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

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![3 => Just("\n"), 1 => Just("\r\n")];
    let lines = prop::collection::vec((line(), end), 0..8);
    (lines, any::<bool>()).prop_map(|(lines, open)| {
        let mut contents: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
        if open {
            contents.truncate(contents.trim_end_matches(['\r', '\n']).len());
        }
        contents.into_bytes()
    })
}

/// The patch that makes one text of another: for each line that differs, with the lines around it.
fn patch_between(old: &[String], new: &[String]) -> Patch {
    let mut lines: Vec<HunkLine> = old.iter().cloned().map(HunkLine::Remove).collect();
    lines.extend(new.iter().cloned().map(HunkLine::Add));
    let hunks = vec![Hunk { lines, end_of_file: true, ..Hunk::default() }];
    Patch { sections: vec![Section::Update { path: "f".into(), move_to: None, hunks, at: 0 }] }
}

proptest! {
    /// spec PATCH.6: A patch that is written out and read again is the same patch.
    #[test]
    fn what_is_written_is_read(patch in patches()) {
        let text = patch.to_string();
        let read: Patch = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(without_numbers(read), patch);
    }

    /// Whatever way it was written in, what it is written out as says the same.
    #[test]
    fn what_is_read_is_written(lines in prop::collection::vec(prop_oneof![
        Just("*** Add File: a".to_owned()), Just("*** Update File: b ".to_owned()),
        Just("*** Delete File:c".to_owned()), Just("*** Move to: b".to_owned()),
        Just("*** End of File".to_owned()), Just("@@".to_owned()), "@@ [a \r]{0,3}",
        Just(String::new()), "[ +-][ab \t\r]{0,3}",
    ], 1..12)) {
        let text = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
        if let Ok(patch) = text.parse::<Patch>() {
            let again = patch.to_string().parse::<Patch>().map(without_numbers);
            prop_assert_eq!(again, Ok(without_numbers(patch)), "{:?}", text);
        }
    }

    /// spec PATCH.7: No text, read as a patch or as a command with one, makes the program fail.
    #[test]
    fn any_text_is_read_or_refused(
        text in prop_oneof![
            any::<String>(),
            prop::collection::vec(prop_oneof![
                Just("*** Begin Patch".to_owned()), Just("*** End Patch".to_owned()),
                Just("*** Add File: a".to_owned()), Just("*** Update File: a".to_owned()),
                Just("*** Delete File: a".to_owned()), Just("*** Move to: b".to_owned()),
                Just("*** End of File".to_owned()), Just("@@".to_owned()), Just("@@ a".to_owned()),
                Just("<<'EOF'".to_owned()), Just("EOF".to_owned()), Just(String::new()),
                "[ +-]?[^\n]{0,4}",
            ], 0..14).prop_map(|lines| lines.join("\n")),
        ],
        file in contents(),
    ) {
        let _ = from_script(&["bash".into(), "-lc".into(), text.clone()]);
        let _ = from_script(&["bash".into(), "-lc".into(), format!("cd {text} && apply_patch <<EOF\n")]);
        if let Ok(patch) = text.parse::<Patch>() {
            let files = InMemory([(Path::new(BASE).join("a"), file)].into());
            match Plan::of(&patch, Path::new(BASE), &files) {
                Ok(plan) => drop((plan.diff(), plan.summary(), plan.counts())),
                Err(error) => drop(error.to_string()),
            }
        }
    }

    /// spec PATCH.38: A patch from one text to another makes just that of it, and the patch back the
    /// first again.
    #[test]
    fn there_and_back_is_where_it_began(
        old in prop::collection::vec("[a-c \t]{0,3}", 0..8),
        new in prop::collection::vec("[a-c \t]{0,3}", 0..8),
        end in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let whole = |lines: &[String]| lines.iter().map(|line| format!("{line}{end}")).collect::<String>();
        prop_assume!(!old.is_empty() && !new.is_empty());
        let path = Path::new(BASE).join("f");
        let mut files = InMemory([(path.clone(), whole(&old).into_bytes())].into());
        for (from, to) in [(&old, &new), (&new, &old)] {
            let plan = Plan::of(&patch_between(from, to), Path::new(BASE), &files).unwrap();
            files.apply(&plan);
            prop_assert_eq!(String::from_utf8(files.0[&path].clone()).unwrap(), whole(to));
        }
    }

    /// spec PATCH.39: Whatever a patch says, the plan's changes are about what is there, and each file
    /// is in it once.
    #[test]
    fn a_plan_fits_the_files(patch in patches(), file in contents()) {
        let mut files = InMemory(
            ["a", "b/a"].map(|name| (Path::new(BASE).join(name), file.clone())).into(),
        );
        if let Ok(plan) = Plan::of(&patch, Path::new(BASE), &files) {
            let mut written: Vec<_> = plan.changes.iter().flat_map(FileChange::written).collect();
            let all = written.len();
            written.sort_unstable();
            written.dedup();
            prop_assert_eq!(written.len(), all);
            // Additions first, then the rest, fails if any two are in each other's way.
            files.apply(&plan);
        }
    }
}

#[cfg(unix)]
mod on_disk {
    use super::*;
    use sandgate_patch::{Roots, apply};
    use sandgate_protocol::WritableRoot;
    use std::fs;
    use std::os::unix::fs::symlink;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// spec PATCH.44: Whatever a patch says and whatever links the workspace has, nothing outside the
        /// writable roots and nothing protected is changed, and a patch that is refused changes nothing.
        #[test]
        fn nothing_outside_is_ever_written(patch in patches(), file in contents()) {
            let kept = tempfile::tempdir().unwrap();
            let base = kept.path().canonicalize().unwrap();
            let (work, outside) = (base.join("work"), base.join("outside"));
            for directory in ["work/b", "work/.git", "work/real", "outside"] {
                fs::create_dir_all(base.join(directory)).unwrap();
            }
            for path in ["work/a", "work/b/a", "work/real/x", "work/.git/config", "outside/victim"] {
                fs::write(base.join(path), &file).unwrap();
            }
            symlink("../outside", work.join("out")).unwrap();
            symlink(outside.join("victim"), work.join("innocent")).unwrap();
            symlink("out", work.join("link")).unwrap();
            symlink("real", work.join("inside")).unwrap();
            let closed = [outside, work.join(".git")];
            let before = closed.each_ref().map(|path| listing(path));
            let work_before = listing(&work);
            let root = WritableRoot { path: work.clone(), read_only_subpaths: vec![work.join(".git")] };
            let applied = Plan::of(&patch, &work, &Disk::default()).map(|plan| {
                apply(&plan, &Roots::new([root], []), &base.join("journals")).is_ok()
            });
            prop_assert_eq!(closed.each_ref().map(|path| listing(path)), before);
            if !matches!(applied, Ok(true)) {
                prop_assert_eq!(listing(&work), work_before);
            }
            prop_assert!(!listing(&work).iter().any(|line| line.contains(".sandgate-")));
        }
    }

    fn listing(directory: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                found.extend(listing(&path));
            }
            let contents = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push(format!("{} {kind:?} {contents:?}", path.display()));
        }
        found.sort_unstable();
        found
    }
}
