//! `grep_files`: the lines that match a pattern, in the files that git does not ignore.

use super::{
    MOST_SAID, Reached, careful_walk, entries, failed, look_at, off_the_loop, open_regular,
    refuse_secrets, resolve, said_of, shown,
};
use crate::tools::{ToolFuture, ToolHandler, ToolInvocation, ToolSpec};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::OverrideBuilder;
use sandgate_protocol::{CodexErr, GrepFilesToolCallParams, ToolOutput};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `grep_files`.
pub(crate) struct GrepFilesHandler;

/// How many lines unless the call says otherwise, and at most.
const DEFAULT_LINES: u64 = 100;
const MOST_LINES: u64 = 2000;

impl ToolHandler for GrepFilesHandler {
    fn spec(&self) -> ToolSpec {
        ToolSpec::of::<GrepFilesToolCallParams>(
            "grep_files",
            "Searches files for a regular expression and gives the matching lines as \
             path:line: text, without what git ignores.",
        )
    }

    fn is_mutating(&self, _: &ToolInvocation<'_>) -> bool {
        false
    }

    fn supports_parallel_tool_calls(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, invocation: ToolInvocation<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let params: GrepFilesToolCallParams = invocation.arguments()?;
            let path = resolve(params.path.as_deref().unwrap_or("."), &invocation)?;
            let home = invocation.services.config.home();
            look_at(&path, &params.pattern, &invocation)?;
            let search = Search {
                matcher: matcher(&params.pattern)?,
                root: path,
                include: params.include,
                home,
                wanted: params.limit.unwrap_or(DEFAULT_LINES).clamp(1, MOST_LINES),
            };
            let text = off_the_loop(invocation.turn.cancellation(), move |limit| {
                search.run(|| limit.is_over())
            });
            Ok(ToolOutput::text(text.await?, true))
        })
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, CodexErr> {
    RegexMatcherBuilder::new()
        .size_limit(10 << 20)
        .dfa_size_limit(10 << 20)
        .line_terminator(Some(b'\n'))
        .build(pattern)
        .map_err(|error| failed(format!("the pattern is not a regular expression: {error}")))
}

struct Search {
    matcher: RegexMatcher,
    root: PathBuf,
    include: Option<String>,
    home: Option<PathBuf>,
    wanted: u64,
}

impl Search {
    fn run(&self, is_over: impl Fn() -> bool + Sync) -> Result<String, CodexErr> {
        let (mut walk, left_out) = careful_walk(&self.root);
        if let Some(include) = &self.include {
            let mut only = OverrideBuilder::new(&self.root);
            let wrong = |error| failed(format!("include is not a pattern of names: {error}"));
            only.add(include).map_err(wrong)?;
            walk.overrides(only.build().map_err(wrong)?);
        }
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(16 << 20))
            .build();
        let mut found = Found { text: String::new(), lines: 0, full: false };
        let (entries, reached) = entries(&walk, &is_over);
        for entry in entries {
            // Only files: whatever else there is could keep a reader waiting for ever.
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            if refuse_secrets(entry.path(), self.home.clone()).is_err() {
                continue;
            }
            self.search(entry.path(), &mut searcher, &mut found);
            if found.full {
                found.text.push_str("[more lines match; narrow the pattern, or raise limit]\n");
                return Ok(found.text);
            }
            if is_over() {
                found.text.push_str("[the search was ended before all files were looked at]\n");
                return Ok(found.text);
            }
        }
        if reached == Reached::Part {
            found.text.push_str("[the search was ended before all files were looked at]\n");
        } else if found.text.is_empty() {
            found.text.push_str("[no line matches]\n");
        }
        for said in said_of(&left_out.beneath(&self.root)) {
            // Writing to a string does not fail.
            let _ = writeln!(found.text, "[{said}]");
        }
        Ok(found.text)
    }

    /// What cannot be read has no lines that match.
    fn search(&self, path: &Path, searcher: &mut Searcher, found: &mut Found) {
        let name = path.strip_prefix(&self.root).ok().filter(|name| !name.as_os_str().is_empty());
        let name = name.unwrap_or(path).display().to_string().replace('\n', "\\n");
        let sink = Lossy(|number, line| {
            if found.lines >= self.wanted || found.text.len() > MOST_SAID {
                found.full = true;
                return Ok(false);
            }
            found.lines += 1;
            // Writing to a string does not fail.
            let _ = writeln!(found.text, "{}:{number}: {}", shown(&name), shown(line));
            Ok(true)
        });
        // By now something else may have the name.
        if let Ok(file) = open_regular(path) {
            let _ = searcher.search_file(&self.matcher, &file, sink);
        }
    }
}

struct Found {
    text: String,
    lines: u64,
    /// There is more than was asked for.
    full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8]| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(".gitignore", b"target/\n");
        put("a.rs", b"one word\nnothing\ntwo word\n");
        put("b.txt", b"word\n");
        put("target/c.rs", b"word\n");
        put("binary", b"word\0word\n");
        directory
    }

    fn search(pattern: &str, include: Option<&str>, wanted: u64) -> String {
        let tree = tree();
        let search = Search {
            matcher: matcher(pattern).unwrap(),
            root: tree.path().to_owned(),
            include: include.map(str::to_owned),
            home: None,
            wanted,
        };
        search.run(|| false).unwrap()
    }

    #[test]
    fn lines_that_match_have_their_place() {
        let all = "a.rs:1: one word\na.rs:3: two word\nb.txt:1: word\n";
        assert_eq!(search("word", None, 100), all);
        assert_eq!(search("^word", Some("*.txt"), 100), "b.txt:1: word\n");
        assert_eq!(search("absent", None, 100), "[no line matches]\n");
    }

    #[test]
    fn a_long_answer_says_that_there_is_more() {
        let text = search("word", None, 1);
        assert_eq!(
            text,
            "a.rs:1: one word\n[more lines match; narrow the pattern, or raise limit]\n"
        );
    }

    /// spec CALL.30: A pipe in the place of a file that says what is ignored holds nobody up: its directory
    /// is left out, and that is said; at the top of the search or above it, nothing counts as ignored.
    #[cfg(unix)]
    #[test]
    fn a_pipe_that_says_what_is_ignored_holds_nobody_up() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let tree = tempfile::tempdir().unwrap();
        for directory in ["one", "two/deep", "three/.git/info", "four"] {
            fs::create_dir_all(tree.path().join(directory)).unwrap();
        }
        for name in ["one/a", "two/a", "two/deep/a", "three/a", "four/a"] {
            fs::write(tree.path().join(name), "word\n").unwrap();
        }
        for pipe in ["one/.gitignore", "two/deep/.ignore", "three/.git/info/exclude"] {
            mknodat(CWD, tree.path().join(pipe), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        std::os::unix::fs::symlink("../one/.gitignore", tree.path().join("four/.gitignore"))
            .unwrap();
        let search = |root: PathBuf| {
            let matcher = matcher("word").unwrap();
            Search { matcher, root, include: None, home: None, wanted: 9 }.run(|| false).unwrap()
        };
        let left_out =
            |name| format!("[{name}/ was left out: its ignore files are not plain files]\n");
        let said = ["four", "one", "three", "two/deep"].map(left_out).concat();
        assert_eq!(search(tree.path().to_owned()), format!("two/a:1: word\n{said}"));
        assert_eq!(search(tree.path().join("one")), "a:1: word\n");
        let listed = super::super::list_dir::list(tree.path(), 2, 1, 9, || false).unwrap();
        assert_eq!(listed.split_once('\n').unwrap().1, format!("  two/\n    a\n{said}"));

        mknodat(CWD, tree.path().join(".gitignore"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(search(tree.path().join("two")).lines().next(), Some("a:1: word"));
    }

    #[test]
    fn a_pattern_that_is_none_is_said() {
        let error = matcher("(").unwrap_err().to_string();
        assert!(error.starts_with("the pattern is not a regular expression"), "{error}");
        assert!(matcher("(a{1000}){1000}{1000}").is_err(), "it would take too much memory");
    }
}
