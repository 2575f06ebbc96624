//! From a page to the code on it: each block with its language, its place and what the page says of it.
//!
//! A comment directly above a block is not shown to readers and says how the block is meant:
//! `<!-- run: ends=77 -->`, `<!-- not run: it needs Docker -->`. Without one a block is as it looks:
//! shell runs and ends in 0, data can be read.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::fs;
use std::path::{Path, PathBuf};

/// One block of code.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it begins: `docs/rules.md:12`.
    pub(crate) place: String,
    /// What stands after the fence; nothing for an indented block.
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) mark: Mark,
}

/// What the page says of a block.
#[derive(Debug)]
pub(crate) enum Mark {
    /// It runs, or is read, on these terms.
    Run(Terms),
    /// It is not, for this reason.
    NotRun(String),
}

/// What is needed and expected of a block that runs.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    /// `ends=77,1`: the exit codes of the commands that do not end in 0, in order.
    pub(crate) ends: Vec<String>,
    /// `answers=y,g`: what the person types at the questions, in order.
    pub(crate) answers: Vec<String>,
    /// `needs=jq,curl`: programs without which the page cannot be tried here.
    pub(crate) needs: Vec<String>,
    /// `until=FILE`: it goes on beside what comes after it, which waits for this file.
    pub(crate) until: Option<String>,
}

/// A page.
pub(crate) struct Page {
    /// Its path from the root of the project.
    pub(crate) path: String,
    pub(crate) blocks: Vec<Block>,
    /// What stands between single backticks, with its line.
    pub(crate) spans: Vec<(usize, String)>,
}

/// The directory of the project.
pub(crate) fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("the tests are run by cargo");
    Path::new(&package).join("../..")
}

/// All pages of the project, by their paths.
pub(crate) fn pages() -> Vec<Page> {
    let root = root();
    let mut paths = Vec::new();
    for directory in ["", "docs/", "docs/design/", "docs/spec/"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                paths.push(format!("{directory}{name}"));
            }
        }
    }
    paths.sort();
    paths.into_iter().map(|path| Page::read(&root, path)).collect()
}

impl Page {
    fn read(root: &Path, path: String) -> Self {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        Self::of(path, &text)
    }

    pub(crate) fn of(path: String, text: &str) -> Self {
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let (mut blocks, mut spans) = (Vec::<Block>::new(), Vec::new());
        let (mut comment, mut is_code) = (None::<String>, false);
        for (event, range) in Parser::new(text).into_offset_iter() {
            match event {
                Event::Html(html) => comment = said(&html),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(info) => info.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    let place = format!("{path}:{}", line(range.start));
                    let mark = Mark::of(comment.take().as_deref(), &place);
                    blocks.push(Block { place, language, text: String::new(), mark });
                    is_code = true;
                }
                Event::Text(more) if is_code => {
                    blocks.last_mut().expect("a block was begun").text.push_str(&more);
                }
                Event::End(TagEnd::CodeBlock) => is_code = false,
                Event::Code(code) => spans.push((line(range.start), code.to_string())),
                Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => {}
                // A comment is about what stands directly below it.
                _ => comment = None,
            }
        }
        Self { path, blocks, spans }
    }
}

/// What a comment says.
fn said(html: &str) -> Option<String> {
    let inside = html.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    Some(inside.trim().to_owned())
}

impl Mark {
    fn of(comment: Option<&str>, place: &str) -> Self {
        if let Some(reason) = comment.and_then(|comment| comment.strip_prefix("not run:")) {
            assert!(!reason.trim().is_empty(), "{place}: say why it is not run");
            return Self::NotRun(reason.trim().to_owned());
        }
        let mut terms = Terms::default();
        let said = comment.and_then(|comment| comment.strip_prefix("run:"));
        for term in said.into_iter().flat_map(str::split_whitespace) {
            let list = |value: &str| value.split(',').map(str::to_owned).collect();
            match term.split_once('=') {
                Some(("ends", codes)) => terms.ends = list(codes),
                Some(("answers", answers)) => terms.answers = list(answers),
                Some(("needs", programs)) => terms.needs = list(programs),
                Some(("until", file)) => terms.until = Some(file.to_owned()),
                _ => {
                    panic!("{place}: there is no term {term:?}; see crates/cli/tests/book/page.rs")
                }
            }
        }
        Self::Run(terms)
    }
}
