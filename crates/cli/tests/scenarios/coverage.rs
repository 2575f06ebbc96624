//! Which cells of the approval matrix, and which answers after a denial, no scenario plays.

use crate::scenario::{Call, Case, Machine};

const PAGE: &str = include_str!("../../../../docs/approval-matrix.md");

/// Every answer that a person, or the lack of one, can give to the question after a denial.
const ANSWERS: [&str; 8] =
    ["yes", "grant", "grant, for the session", "no", "no, …", "abort", "leave", "wait"];

/// What happens beside the matrix, by a scenario of this name.
const OTHERS: [&str; 8] = [
    "cached_approval",
    "denial_with_exit_code_zero",
    "failure_without_denial",
    "leaving_without_justification",
    "network_is_blocked",
    "protected_name",
    "rule_from_an_answer",
    "second_attempt_blocked_too",
];

/// What no scenario plays, and what one plays otherwise than the page says.
pub(crate) fn missing(cases: &[Case<'_>]) -> Vec<String> {
    let mut missing = Vec::new();
    let cells = [cells_without_rule(), cells_with_rule()].concat();
    // Four policies, two machines, two calls, three classes, four modes; and four rules, two calls,
    // three grounds, four policies.
    assert_eq!(cells.len(), 4 * 2 * 2 * 3 * 4 + 4 * 2 * 3 * 4, "the page was read to its end");
    for cell in &cells {
        for sandbox in cell.sandboxes() {
            let played: Vec<_> =
                cases.iter().filter(|case| cell.is_played_by(case, sandbox)).collect();
            if played.is_empty() {
                missing.push(format!("{cell:?} in {sandbox}"));
            }
            let otherwise = played.iter().filter(|case| !cell.agrees(case));
            missing.extend(otherwise.map(|case| format!("{case}: the page says {:?}", cell.says)));
        }
    }
    missing.extend(answers_after_a_denial(cases));
    let named =
        |name: &&str| cases.iter().any(|case| case.scenario.name == format!("other/{name}.toml"));
    missing
        .extend(OTHERS.iter().filter(|name| !named(name)).map(|name| format!("other/{name}.toml")));
    missing
}

fn answers_after_a_denial(cases: &[Case<'_>]) -> Vec<String> {
    let mut missing = Vec::new();
    for policy in ["untrusted", "on-failure", "on-request"] {
        for answer in ANSWERS {
            let is_it =
                |case: &&Case<'_>| case.policy == policy && answer_to_denial(case) == Some(answer);
            if !cases.iter().any(|case| is_it(&case)) {
                missing.push(format!("{policy}: after a denial the answer {answer:?}"));
            }
        }
    }
    let quiet = |case: &&Case<'_>| {
        let story = &case.scenario.story;
        case.policy == "never" && story.iter().any(|line| line.starts_with("  blocked: "))
    };
    if !cases.iter().any(|case| quiet(&case)) {
        missing.push("never: a denial".to_owned());
    }
    missing
}

/// What a case answers to the question after a denial, if there is one.
fn answer_to_denial<'a>(case: &Case<'a>) -> Option<&'a str> {
    let mut questions = case.scenario.story.iter().filter(|line| line.starts_with("asked: "));
    let after_denial = questions.position(|line| line == "asked: the sandbox blocked it")?;
    let answer = case.scenario.answers.get(after_denial)?;
    Some(if answer.starts_with("no, ") { "no, …" } else { answer })
}

/// One cell of the page.
#[derive(Debug, Clone)]
struct Cell {
    policy: String,
    rule: Option<String>,
    /// As the page has it: the class of the command, with a rule none.
    class: Option<String>,
    call: Call,
    ground: Ground,
    says: String,
}

#[derive(Debug, Clone)]
enum Ground {
    /// A mode, on a machine with or without a sandbox.
    Mode(String, Machine),
    /// With a rule the page tells only these apart.
    Active,
    Missing,
    NotAskedFor,
}

impl Cell {
    /// The modes in which it has to be played.
    fn sandboxes(&self) -> Vec<&str> {
        match &self.ground {
            Ground::Mode(mode, _) if mode == "workspace-write" => {
                vec!["workspace-write", "workspace-write+network"]
            }
            Ground::Mode(mode, _) => vec![mode],
            Ground::Active => vec!["workspace-write", "external-sandbox"],
            Ground::Missing => vec!["workspace-write"],
            Ground::NotAskedFor => vec!["danger-full-access"],
        }
    }

    fn machine(&self) -> Option<Machine> {
        match self.ground {
            Ground::Mode(_, machine) => Some(machine),
            Ground::Active => Some(Machine::There),
            Ground::Missing => Some(Machine::Missing),
            Ground::NotAskedFor => None,
        }
    }

    fn is_played_by(&self, case: &Case<'_>, sandbox: &str) -> bool {
        case.policy == self.policy
            && case.scenario.rule == self.rule
            && self.class.as_ref().is_none_or(|class| class == case.class)
            && case.call == self.call
            && case.sandbox == sandbox
            && self.machine().is_none_or(|machine| machine == case.machine)
            && case.scenario.name.starts_with("matrix/")
    }

    /// Whether a case comes out as the cell says.
    fn agrees(&self, case: &Case<'_>) -> bool {
        let first = case.scenario.story.first().map_or("", String::as_str);
        let result = &case.scenario.result;
        let runs = match case.is_confined() {
            true => "runs in the sandbox",
            false => "runs without a sandbox",
        };
        let asked = first.strip_prefix("asked: ");
        let reason = asked.unwrap_or_default();
        match self.says.as_str() {
            "runs" => first == runs,
            "runs, no sandbox" => first == "runs without a sandbox",
            "ask: dangerous" => reason.starts_with("dangerous: "),
            "ask: unknown" => {
                reason.contains("is not among the commands that are known to be safe")
            }
            "ask: leaving" => reason.contains("it asks to run without the sandbox"),
            "ask: no sandbox" => reason.ends_with("no sandbox available"),
            "ask: rule" => reason.starts_with("a rule asks"),
            "refused: rule" => asked.is_none() && result.starts_with("A rule forbids"),
            "refused: leaving" => asked.is_none() && result.contains("only under on-request"),
            "refused: nobody to ask" => asked.is_none() && result.contains("nobody can be asked"),
            other => panic!("{other:?} is a cell that nobody here knows"),
        }
    }
}

/// The rows of the tables in a part of the page, cell by cell.
fn rows(part: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = part.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
}

fn call(word: &str) -> Call {
    if word == "leaves" { Call::Leaves } else { Call::Stays }
}

fn cells_without_rule() -> Vec<Cell> {
    let (_, part) = PAGE.split_once("## Without a rule").expect("the part without rules");
    let (part, _) = part.split_once("## With a rule").expect("the part with rules");
    let mut cells = Vec::new();
    for section in part.split("### ").skip(1) {
        let policy = section.lines().next().unwrap();
        let mut rows = rows(section);
        let modes = rows.next().unwrap();
        for row in rows {
            let machine = if row[0] == "missing" { Machine::Missing } else { Machine::There };
            for (mode, says) in modes.iter().zip(&row).skip(3) {
                cells.push(Cell {
                    policy: policy.to_owned(),
                    rule: None,
                    class: Some(row[2].to_owned()),
                    call: call(row[1]),
                    ground: Ground::Mode((*mode).to_owned(), machine),
                    says: (*says).to_owned(),
                });
            }
        }
    }
    cells
}

fn cells_with_rule() -> Vec<Cell> {
    let (_, part) = PAGE.split_once("## With a rule").expect("the part with rules");
    let mut rows = rows(part);
    let policies = rows.next().unwrap();
    let mut cells = Vec::new();
    for row in rows {
        let ground = match row[2] {
            "active" => Ground::Active,
            "missing" => Ground::Missing,
            "not asked for" => Ground::NotAskedFor,
            other => panic!("{other:?} is a ground that nobody here knows"),
        };
        for (policy, says) in policies.iter().zip(&row).skip(3) {
            cells.push(Cell {
                policy: (*policy).to_owned(),
                rule: Some(row[0].to_owned()),
                class: None,
                call: call(row[1]),
                ground: ground.clone(),
                says: (*says).to_owned(),
            });
        }
    }
    cells
}
