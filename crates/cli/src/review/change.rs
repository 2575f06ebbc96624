//! The change that is reviewed, as git shows it. git runs through the gate like any command.

use sandgate_agent::{Changes, ReviewSubject};
use sandgate_protocol::ExecToolCallOutput;
use sandgate_runtime::{AskedCommand, CommandLine, Requester, Stop, new_call_id};

/// How a diff is to look, whatever the settings of git say.
const LOOKS: [&str; 6] = [
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Has git show the change.
///
/// # Errors
/// When it does not, with a sentence.
pub(super) async fn change(
    requester: &Requester,
    subject: &ReviewSubject,
    stop: &Stop,
) -> Result<Changes, String> {
    let nothing = match subject {
        ReviewSubject::Uncommitted => before_the_first_commit(requester, stop).await?,
        ReviewSubject::Base(_) | ReviewSubject::Commit(_) => None,
    };
    let shown: Vec<&str> = match subject {
        ReviewSubject::Uncommitted => vec!["diff", nothing.as_deref().unwrap_or("HEAD")],
        ReviewSubject::Base(base) => vec!["diff", "--merge-base", base],
        ReviewSubject::Commit(commit) => vec!["show", "--diff-merges=first-parent", commit],
    };
    let [verb, rest @ ..] = &shown[..] else { return Err("there is nothing to show".to_owned()) };
    let words = [&["git", *verb], &LOOKS[..], rest, &["--"]].concat();
    let diff = git(requester, &words, stop).await?;
    let new_files = match subject {
        ReviewSubject::Commit(_) => Vec::new(),
        ReviewSubject::Uncommitted | ReviewSubject::Base(_) => {
            // Of all the repository, as the diff is, wherever in it this is.
            let list = "ls-files --others --exclude-standard --full-name -z -- :/";
            let list: Vec<&str> = ["git"].into_iter().chain(list.split(' ')).collect();
            let listed = git(requester, &list, stop).await?.stdout.text;
            listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
    };
    let is_whole = diff.stdout.omitted_bytes == 0;
    Ok(Changes { diff: diff.stdout.text, is_whole, new_files })
}

/// What a first commit is compared with, where there is none yet.
async fn before_the_first_commit(
    requester: &Requester,
    stop: &Stop,
) -> Result<Option<String>, String> {
    let head = run(requester, &["git", "rev-parse", "--verify", "--quiet", "HEAD"], stop).await?;
    // It ends with 1 and says nothing where there is a repository and no commit.
    if head.exit_code != 1 || !head.stderr.text.trim().is_empty() {
        return Ok(None);
    }
    let empty = git(requester, &["git", "hash-object", "-t", "tree", "/dev/null"], stop).await?;
    Ok(Some(empty.stdout.text.trim().to_owned()))
}

async fn git(
    requester: &Requester,
    words: &[&str],
    stop: &Stop,
) -> Result<ExecToolCallOutput, String> {
    let output = run(requester, words, stop).await?;
    match output.exit_code {
        0 => Ok(output),
        code => {
            let said = output.stderr.text.trim();
            let said = said.lines().next().filter(|line| !line.is_empty());
            Err(format!(
                "git cannot show the change: {}",
                said.map_or_else(|| format!("it ended with exit code {code}"), str::to_owned)
            ))
        }
    }
}

async fn run(
    requester: &Requester,
    words: &[&str],
    stop: &Stop,
) -> Result<ExecToolCallOutput, String> {
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    let asked = AskedCommand::new(CommandLine::Argv(argv));
    let turn = requester.begin_turn().stopped_by(stop);
    let ran = requester.run_command(&new_call_id(), asked, &turn).await;
    Ok(ran.map_err(|error| error.to_string())?.output.output)
}
