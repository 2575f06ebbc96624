//! What a person is told about a file that is not in order.

use proptest::prelude::*;
use sandgate_config::{Owner, check};
use sandgate_protocol::{is_invisible, is_odd_blank};

/// Files with something wrong or odd in them, each with a name.
const FILES: &[(&str, &str)] = &[
    ("a word that there is not", "sandbox_mode = \"workspace-wrote\"\n"),
    ("a word far from any", "model = \"m\"\napproval_policy = \"whenever\"\n"),
    ("a number for a word", "approval_policy = 3\n"),
    ("a word for yes or no", "[sandbox_workspace_write]\nnetwork_access = \"yes\"\n"),
    ("a text for a list", "[sandbox_workspace_write]\nwritable_roots = \"/tmp\"\n"),
    ("a number in a list", "[shell_environment_policy]\nexclude = [\n  \"A*\",\n  7,\n]\n"),
    ("zero where more is needed", "[timeouts]\ncommand_ms = 0\n"),
    ("less than nothing", "[limits]\noutput_tokens = -1\n"),
    ("a fraction", "limits.output_tokens = 1.5\n"),
    ("seconds without end", "[mcp_servers.x]\ncommand = \"x\"\ntool_timeout_sec = inf\n"),
    ("a number too large", "project_doc_max_bytes = 10_000_000\n"),
    ("an address that is none", "[model_providers.x]\nbase_url = \"localhost:80\"\n"),
    ("an address with a password", "otel.endpoint = \"https://me:secret@x\"\n"),
    ("a header that would be two", "[mcp_servers.x]\nhttp_headers = { A = \"b\\r\\nC: d\" }\n"),
    ("a name that is no header", "[model_providers.x.http_headers]\n\"A b\" = \"c\"\n"),
    ("a key where its variable goes", "[model_providers.x]\nenv_key = \"sk-1234\"\n"),
    ("a server with a name for no tool", "[mcp_servers.\"my docs\"]\ncommand = \"x\"\n"),
    ("no program for a key", "[model_providers.x]\nkey_command = []\n"),
    ("a program without a name", "[model_providers.x]\nkey_command = [\"\"]\n"),
    ("a value for a table", "sandbox_workspace_write = true\n"),
    ("a table for a value", "[model]\nname = \"x\"\n"),
    ("a table for a text in a map", "[shell_environment_policy.set]\nA = { b = 1 }\n"),
    ("a list of tables", "[[mcp_servers]]\ncommand = \"x\"\n"),
    ("inside of a profile", "[profiles.ci]\nsandbox_mode = \"none\"\n"),
    ("a name with a dot", "[projects.\"/a.b\"]\ntrust_level = \"yes\"\n"),
    ("two at once", "sandbox_mode = 1\napproval_policy = 2\n"),
    ("no quotes", "sandbox_mode = read-only\n"),
    ("half a table", "[sandbox_workspace_write\nnetwork_access = true\n"),
    ("the same key twice", "model = \"a\"\nmodel = \"b\"\n"),
    ("hidden letters", "sandbox_mode = \"read\u{202e}-only\u{1b}[2J\"\n"),
    ("a tab before it", "\tsandbox_mode\t=\t\"ro\"\n"),
    (
        "a very long text",
        "sandbox_mode = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
    ),
    ("a key that is nearly one", "modle = \"x\"\n"),
    ("a key with a dash", "sandbox-mode = \"read-only\"\n"),
    ("a key of another program", "notify = [\"notify-send\"]\n[tui]\ntheme = \"dark\"\n"),
    ("a feature that there is not", "[features]\nwindows_sandbox = true\n"),
    ("a feature that was removed", "[features]\nrequest_rule = true\n"),
    ("a profile in a profile", "[profiles.a]\nprofile = \"b\"\n"),
];

fn told(text: &str, owner: Owner) -> String {
    let (verdict, problems) = match check(text, "config.toml", owner) {
        Ok(checked) => ("used", checked.warnings),
        Err(problems) => ("not used", problems),
    };
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{}\n=> {verdict}\n", told.join("\n"))
}

/// spec CONFIG.2: Whatever is wrong in a file is reported with the file, the line, the column, the
/// setting, what was given, what is allowed, and the line itself with the place marked; nothing of
/// such a file is used.
///
/// spec CONFIG.3: A key that is no setting is a warning that names the nearest one if there is one,
/// and everything else in the file counts.
///
/// spec CONFIG.4: A feature that was removed is accepted with a note.
#[test]
fn every_mistake_is_told_with_its_place_and_what_to_do() {
    let mut all = String::new();
    for (name, text) in FILES {
        all.push_str(&format!("# {name}\n{}\n", told(text, Owner::Person)));
    }
    insta::assert_snapshot!("wrong_files", all);
}

/// spec CONFIG.22: `projects`, `rules` and `codex_linux_sandbox_exe` in a project's file never count.
#[test]
fn what_is_the_persons_alone_does_not_count_in_a_projects_file() {
    let text = "codex_linux_sandbox_exe = \"/evil\"\nrules = [\"allow.toml\"]\nmodel = \"m\"\n\
                [projects.\"/\"]\ntrust_level = \"trusted\"\n[profiles.p]\nrules = [\"allow.toml\"]\n";
    let checked = check(text, "config.toml", Owner::Project).unwrap();
    assert_eq!(checked.table.keys().collect::<Vec<_>>(), ["model", "profiles"]);
    assert_eq!(checked.table["profiles"]["p"].as_table().unwrap().len(), 0);
    insta::assert_snapshot!("persons_alone", told(text, Owner::Project));
    assert_eq!(check(text, "config.toml", Owner::Person).unwrap().table.len(), 5);
}

#[test]
fn warnings_take_only_their_own_key_away() {
    let text = "modle = \"x\"\nmodel = \"y\"\n[audit]\nfsnyc = \"each\"\non_failure = \"go-on\"\n";
    let checked = check(text, "config.toml", Owner::Person).unwrap();
    let left = toml::toml! {
        model = "y"
        [audit]
        on_failure = "go-on"
    };
    assert_eq!(checked.table, left);
    assert_eq!(checked.warnings.len(), 2);
}

/// Text with more of settings in it than chance would put there.
fn text() -> impl Strategy<Value = String> {
    let known: Vec<String> = FILES.iter().map(|(_, text)| (*text).to_owned()).collect();
    let piece = prop_oneof![
        4 => prop::sample::select(known),
        1 => "(model|profiles|mcp_servers|projects|sandbox_mode|\"[\u{ad}\u{2028}\u{3164}é.]\")\\.?",
        1 => "[\\[\\]{}\"'=.,#\\\\\n\r\t a-c1-3é\u{a0}\u{202e}\u{2028}\u{3164}\u{e0041}]{0,12}",
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_words_that_hide_nothing(text in text()) {
        for owner in [Owner::Person, Owner::Project] {
            let problems = match check(&text, "config.toml", owner) {
                Ok(checked) => checked.warnings,
                Err(problems) => {
                    prop_assert!(!problems.is_empty(), "{:?}", text);
                    problems
                }
            };
            for problem in problems {
                prop_assert!((1..=text.split('\n').count()).contains(&problem.line), "{:?}", problem);
                prop_assert!(problem.column >= 1, "{:?}", problem);
                let told = problem.to_string();
                prop_assert_eq!(told.split('\n').count(), 5, "{}", told);
                let hides = |c: char| c != '\n' && c.is_control() || is_invisible(c) || is_odd_blank(c);
                prop_assert!(!told.contains(hides), "{:?}", told);
            }
        }
    }
}
