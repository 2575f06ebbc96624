//! The pages of the book, held to their word: what they show is run, read or looked up.

#![cfg(target_os = "linux")]

mod data;
mod page;
mod shell;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/terminal.rs"]
#[allow(dead_code, reason = "each test file uses its own share of this module")]
mod terminal;
mod words;

use page::{Block, Mark, Page, pages};
use std::collections::BTreeMap;
use std::sync::Mutex;
use words::{Commands, chores, lines_that_begin};

/// What a block is, by its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Commands.
    Shell,
    /// A file of settings or rules.
    Toml,
    /// Values.
    Json,
    /// Source of a program.
    Program,
    /// What somebody sees or draws; nothing that could be run.
    Text,
}

impl Block {
    fn kind(&self) -> Option<Kind> {
        match self.language.split(',').next().unwrap_or_default() {
            "" | "sh" | "console" => Some(Kind::Shell),
            "toml" => Some(Kind::Toml),
            "json" => Some(Kind::Json),
            "rust" | "python" => Some(Kind::Program),
            "text" => Some(Kind::Text),
            _ => None,
        }
    }

    fn runs(&self) -> bool {
        matches!(self.mark, Mark::Run(_)) && !self.is_for_the_source()
    }

    /// Whether all of it is for a source tree: to build and test it takes longer than a test may, and is what
    /// `scripts/test` does.
    fn is_for_the_source(&self) -> bool {
        let is_chore = |line: &str| {
            ["cargo ", "just ", "./scripts/", "scripts/", "mdbook "]
                .iter()
                .any(|word| line.starts_with(word))
        };
        self.kind() == Some(Kind::Shell) && self.text.lines().all(is_chore)
    }
}

/// spec BOOK.1: Every block of code on a page runs or is read by a test, or says why not in a comment that readers
/// are not shown.
#[test]
fn every_block_is_tried_or_says_why_not() {
    let (mut tried, mut not_run) = (BTreeMap::<Kind, usize>::new(), BTreeMap::new());
    for page in pages() {
        for block in &page.blocks {
            if block.is_for_the_source() {
                let reason = "it is for the source of the project".to_owned();
                *not_run.entry(reason).or_insert(0) += 1;
                continue;
            }
            match (block.kind(), &block.mark) {
                (_, Mark::NotRun(reason)) => *not_run.entry(reason.clone()).or_insert(0) += 1,
                (Some(kind), Mark::Run(_)) => *tried.entry(kind).or_default() += 1,
                (None, Mark::Run(_)) => panic!(
                    "{}: nobody here can run {:?}; say why above it: <!-- not run: it needs … -->",
                    block.place, block.language
                ),
            }
        }
    }
    println!("tried: {tried:?}\nnot run: {not_run:#?}");
    assert!(tried[&Kind::Shell] > 30, "{tried:?}");
}

/// spec BOOK.2: The commands of a page are run in order by a shell at a terminal; they end and print as the page
/// says, and what is asked is what the page says is asked.
#[test]
fn commands_do_what_the_page_says() {
    let status = support::World::new().sandgate(&["sandbox", "--status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    if status["namespaces"] != true {
        return support::skipped("the pages show what a machine with namespaces does");
    }
    let pages = pages();
    let shells = |page: &Page| -> bool {
        page.blocks.iter().any(|block| block.kind() == Some(Kind::Shell) && block.runs())
    };
    let queue = Mutex::new(pages.iter().filter(|page| shells(page)));
    let faults = Mutex::new(Vec::new());
    let work = || {
        let next = || queue.lock().unwrap().next();
        while let Some(page) = next() {
            let blocks = page.blocks.iter();
            let blocks: Vec<&Block> =
                blocks.filter(|block| block.kind() == Some(Kind::Shell) && block.runs()).collect();
            // What is wrong with one page is no reason to leave the others alone.
            match std::panic::catch_unwind(|| shell::run(&page.path, &blocks)) {
                Ok(Ok(())) => {}
                Ok(Err(why)) => support::skipped(&why),
                Err(_) => faults.lock().unwrap().push(&page.path),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "these pages do not do what they say: {faults:?}");
}

/// spec BOOK.3: Settings and rules on a page can be read by what reads them in the program, events and scripts of
/// a model too, and a program on a page is one that tests compile and run.
#[test]
fn data_and_programs_are_what_they_are_said_to_be() {
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.runs()) {
            match block.kind() {
                Some(Kind::Toml) => data::toml(block),
                Some(Kind::Json) => data::json(block),
                Some(Kind::Program) => data::program(block),
                Some(Kind::Shell | Kind::Text) | None => {}
            }
        }
    }
}

/// spec BOOK.4: Every command and option of `sandgate`, and every task of `cargo xtask`, that a page names exists.
#[test]
fn commands_that_pages_name_exist() {
    let commands = Commands::read();
    let (mut count, mut faults) = (0, Vec::new());
    // The page that they are held against has other forms of them, and a test of its own.
    for page in pages().into_iter().filter(|page| page.path != "docs/cli.md") {
        for (place, line) in lines_that_begin(&page, "sandgate ") {
            count += 1;
            faults.extend(commands.fault(&line).map(|fault| format!("{place}: {fault}: {line}")));
        }
    }
    // As another user the sources are not at hand; those of the project have been looked at by then.
    for page in pages().iter().filter(|_| chores().is_some()) {
        for (place, line) in lines_that_begin(page, "cargo xtask ") {
            let name = line.split(' ').nth(2).unwrap_or_default();
            if !chores().unwrap_or_default().iter().any(|chore| chore == name) {
                faults.push(format!("{place}: there is no such chore: {line}"));
            }
        }
    }
    assert!(count > 200, "{count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// spec BOOK.5: Every page of the book is in its table of contents.
#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = std::fs::read_to_string(page::root().join("docs/SUMMARY.md")).unwrap();
    let pages =
        pages().into_iter().filter_map(|page| Some(page.path.strip_prefix("docs/")?.to_owned()));
    for path in pages.filter(|path| path != "SUMMARY.md") {
        assert!(contents.contains(&format!("({path})")), "docs/{path} is not in docs/SUMMARY.md");
    }
}

#[test]
fn marks_are_read_from_comments_above_blocks() {
    let text = "A\n\n<!-- not run: it needs a cluster -->\n\n```sh\na\n```\n\n<!-- run: ends=77,1 -->\n    b\n\n\
                <!-- run: ends=9 -->\n\nC\n\n```toml\nd\n```\n";
    let page = Page::of("x.md".to_owned(), text);
    assert!(matches!(&page.blocks[0].mark, Mark::NotRun(why) if why == "it needs a cluster"));
    assert!(matches!(&page.blocks[1].mark, Mark::Run(terms) if terms.ends == ["77", "1"]));
    assert!(matches!(&page.blocks[2].mark, Mark::Run(terms) if terms.ends.is_empty()));
    assert_eq!((page.blocks[1].text.as_str(), page.blocks[2].place.as_str()), ("b\n", "x.md:16"));
}

#[test]
fn dots_stand_for_anything() {
    assert!(shell::is_like("a…c\n…\nd\n", "abc\nx\ny\nd\n"));
    assert!(shell::is_like("a\n", "a  \n"));
    for told in ["abd\nd\n", "abc\n", "abc\nd\ne\n"] {
        assert!(!shell::is_like("a…c\n…\nd\n", told), "{told}");
    }
}
