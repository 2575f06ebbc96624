//! The console: what a browser is given.
//!
//! The sources are what is served; there is no build step. `docs/design/console.md` says how they hang together.

/// A file: its path on the server, what it is, and what is in it.
type File = (&'static str, &'static str, &'static [u8]);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Each file of the console.
pub(crate) const FILES: &[File] = &[
    ("/", HTML, include_bytes!("index.html")),
    ("/assets/style.css", CSS, include_bytes!("style.css")),
    ("/assets/ansi.js", SCRIPT, include_bytes!("ansi.js")),
    ("/assets/api.js", SCRIPT, include_bytes!("api.js")),
    ("/assets/app.js", SCRIPT, include_bytes!("app.js")),
    ("/assets/approvals.js", SCRIPT, include_bytes!("approvals.js")),
    ("/assets/audit.js", SCRIPT, include_bytes!("audit.js")),
    ("/assets/card.js", SCRIPT, include_bytes!("card.js")),
    ("/assets/chart.js", SCRIPT, include_bytes!("chart.js")),
    ("/assets/conversations.js", SCRIPT, include_bytes!("conversations.js")),
    ("/assets/diff.js", SCRIPT, include_bytes!("diff.js")),
    ("/assets/dom.js", SCRIPT, include_bytes!("dom.js")),
    ("/assets/markdown.js", SCRIPT, include_bytes!("markdown.js")),
    ("/assets/notify.js", SCRIPT, include_bytes!("notify.js")),
    ("/assets/questions.js", SCRIPT, include_bytes!("questions.js")),
    ("/assets/screen.js", SCRIPT, include_bytes!("screen.js")),
    ("/assets/settings.js", SCRIPT, include_bytes!("settings.js")),
    ("/assets/terminals.js", SCRIPT, include_bytes!("terminals.js")),
    ("/assets/transcript.js", SCRIPT, include_bytes!("transcript.js")),
    ("/assets/visible.js", SCRIPT, include_bytes!("visible.js")),
    ("/assets/vendor/xterm.css", CSS, include_bytes!("vendor/xterm.css")),
    ("/assets/vendor/xterm.mjs", SCRIPT, include_bytes!("vendor/xterm.mjs")),
    ("/assets/vendor/addon-fit.mjs", SCRIPT, include_bytes!("vendor/addon-fit.mjs")),
    ("/assets/vendor/LICENSE-xterm.txt", TEXT, include_bytes!("vendor/LICENSE-xterm.txt")),
    ("/assets/vendor/LICENSE-addon-fit.txt", TEXT, include_bytes!("vendor/LICENSE-addon-fit.txt")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};

    /// What makes elements, code or styles out of text.
    const SINKS: [&str; 16] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "setHTML",
        "createContextualFragment",
        "DOMParser",
        "document.write",
        "srcdoc",
        "eval(",
        "Function(",
        "javascript:",
        "await import(",
        "<style",
        "style=",
        "setTimeout(\"",
        ".src =",
    ];

    fn ours() -> impl Iterator<Item = (&'static str, &'static str)> {
        let ours = FILES.iter().filter(|(path, ..)| !path.contains("/vendor/"));
        ours.map(|(path, _, bytes)| (*path, std::str::from_utf8(bytes).unwrap()))
    }

    /// spec WEB.2: No source of the console makes elements, code or styles out of text.
    #[test]
    fn text_stays_text() {
        for (path, text) in ours() {
            for (number, line) in text.lines().enumerate() {
                let line = line.trim_start();
                let code = match line.split_once("*/") {
                    Some((_, rest)) if line.starts_with("/**") => rest,
                    None if ["//", "/**", "* "].iter().any(|mark| line.starts_with(mark)) => "",
                    _ => line,
                };
                let sink = SINKS.iter().find(|sink| code.contains(**sink));
                assert!(sink.is_none(), "{path}:{}: {sink:?}: {line}", number + 1);
            }
        }
        let page = ours().find(|(path, _)| *path == "/").unwrap().1;
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script type=\"module\" src=").count()
        );
        assert!(!page.contains(" on"), "{page}");
    }

    /// spec WEB.7: What does not show itself in the console is what does not anywhere else.
    #[test]
    fn the_console_knows_what_does_not_show_itself() {
        let script = ours().find(|(path, _)| *path == "/assets/visible.js").unwrap().1;
        let table = script.split("const INVISIBLE = [").nth(1).unwrap().split("];").next().unwrap();
        let point =
            |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
        let ranges: Vec<(u32, u32)> = table
            .split('[')
            .skip(1)
            .map(|pair| pair.split(']').next().unwrap().split_once(',').unwrap())
            .map(|(first, last)| (point(first), point(last)))
            .collect();
        for c in '\0'..=char::MAX {
            let listed =
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)));
            assert_eq!(listed, sandgate_protocol::is_invisible(c), "{c:?}");
        }
    }

    #[test]
    fn what_a_file_names_is_served() {
        let served = |path: &str| FILES.iter().any(|(known, ..)| *known == path);
        let mut named = 0;
        for (path, text) in ours() {
            for (before, after) in
                [("from \"./", "\";"), ("\"/assets/", "\""), ("href: \"assets/", "\"")]
            {
                for part in text.split(before).skip(1) {
                    let name = part.split(after).next().unwrap();
                    assert!(served(&format!("/assets/{name}")), "{path} names {name}");
                    named += 1;
                }
            }
        }
        assert!(named > 30, "{named}");
    }

    /// spec WEB.3: What is not ours is as it was published: its checksums are those of the notice beside it.
    #[test]
    fn what_is_not_ours_is_as_it_was_published() {
        let notice = include_str!("vendor/NOTICE.md");
        let theirs =
            FILES.iter().filter(|(path, kind, _)| path.contains("/vendor/") && *kind != TEXT);
        let mut count = 0;
        for (path, _, bytes) in theirs {
            let name = path.rsplit('/').next().unwrap();
            let line = notice.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
            let sum: String =
                Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(line.is_some_and(|line| line.contains(&sum)), "{name}: {sum}");
            count += 1;
        }
        assert_eq!(count, 3);
    }
}
