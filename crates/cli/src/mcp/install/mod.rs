//! `sandgate mcp install`: what a client must be told to have this server, and its settings changed on
//! request.

mod jsonc;

use crate::settings::config_home;
use crate::{exit, notes};
use clap::ValueEnum;
use sandgate_config::{EditError, change_own_file, change_project_file};
use sandgate_protocol::visible;
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
What follows -- is given to sandgate mcp whenever the client starts it:
  sandgate mcp install --client claude -- --ask-for-approval untrusted

Without --write nothing is changed: the snippet is printed, and where it belongs. With --write the file is
changed and the change is shown; everything else in it stays as it is, comments too.

Exit codes: 0; 1 if the file is not in order, so that it was left as it is; 125 if sandgate itself failed; 2 if
this command line makes no sense.";

/// What may follow `sandgate mcp install`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliInstall {
    /// The client
    #[arg(long, value_enum)]
    client: Client,

    /// Change the client's file
    #[arg(long)]
    write: bool,

    /// What the client calls the server
    #[arg(long, default_value = "sandgate", value_parser = name)]
    name: String,

    /// Options of sandgate mcp
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// A client whose settings are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    /// Claude Code: .mcp.json of the project in this directory
    Claude,
    /// Codex: config.toml in ~/.codex
    Codex,
    /// Cursor: ~/.cursor/mcp.json
    Cursor,
    /// Zed: ~/.config/zed/settings.json
    Zed,
    /// Visual Studio Code: .vscode/mcp.json of the project in this directory
    Vscode,
}

/// A name that stands in every client's file without quoting.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 64 letters, digits, `-` or `_`".to_owned()),
    }
}

/// Where a client keeps its servers.
enum Place {
    /// In a file of the person's.
    Own(PathBuf, &'static str),
    /// In a file of the project in this directory: a repository may have put anything there.
    Project(&'static [&'static str]),
}

impl Place {
    fn path(&self) -> PathBuf {
        match self {
            Self::Own(directory, file) => directory.join(file),
            Self::Project(names) => [".", &names.join("/")].iter().collect(),
        }
    }

    /// Changes the file, and returns it.
    fn change(
        &self,
        change: impl FnOnce(Option<&str>) -> Option<String>,
    ) -> Result<PathBuf, EditError> {
        match self {
            Self::Own(directory, file) => change_own_file(directory, file, change),
            Self::Project(names) => change_project_file(Path::new("."), names, change),
        }
    }
}

/// What is to be in a client's settings.
struct Entry<'a> {
    client: Client,
    name: &'a str,
    command: &'a str,
    arguments: Vec<String>,
}

/// Prints what a client must be told, or tells it.
pub(crate) fn install(cli: &CliInstall) -> ExitCode {
    ExitCode::from(try_install(cli).unwrap_or_else(|failure| {
        let (code, message) = failure;
        let _ = io::stderr().write_all(&notes::error(&visible(&message), None));
        code
    }))
}

fn try_install(cli: &CliInstall) -> Result<u8, (u8, String)> {
    let failed = |message: &str| (exit::FAILED, message.to_owned());
    let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
    let command = program.to_str().ok_or_else(|| failed("the path of this program is not text"))?;
    let entry = Entry {
        client: cli.client,
        name: &cli.name,
        command,
        arguments: std::iter::once("mcp".to_owned()).chain(cli.options.iter().cloned()).collect(),
    };
    let place = cli.client.place().ok_or_else(|| failed("there is no home directory"))?;
    if !cli.write {
        return print(&entry.told(&place.path()));
    }
    let mut changed: Result<Option<String>, String> = Ok(None);
    let mut before = String::new();
    let path = place.change(|text| {
        before = text.unwrap_or_default().to_owned();
        changed = entry.added_to(&before).map(|after| Some(after).filter(|after| *after != before));
        changed.clone().ok().flatten()
    });
    let path = path.map_err(|error| (exit::FAILED, error.to_string()))?;
    match changed {
        Ok(Some(after)) => print(&diff(&path, &before, &after)),
        Ok(None) => print(&format!("{} has it already.\n", path.display())),
        Err(why) => {
            let path = path.display();
            Err((
                NOT_IN_ORDER,
                format!(
                    "{path} was left as it is: {why}; add this to it by hand:\n\n{}",
                    entry.snippet()
                ),
            ))
        }
    }
}

/// A client's file is not in order.
const NOT_IN_ORDER: u8 = 1;

fn print(text: &str) -> Result<u8, (u8, String)> {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(0),
        Err(_) => Ok(exit::OUTPUT_CLOSED),
    }
}

fn diff(path: &Path, before: &str, after: &str) -> String {
    let path = visible(&path.display().to_string());
    let diff = similar::TextDiff::from_lines(before, after);
    // Whatever the file holds, it moves no cursor.
    visible(&diff.unified_diff().context_radius(3).header(&path, &path).to_string())
}

impl Client {
    fn place(self) -> Option<Place> {
        let home = || sandgate_runtime::policy::home();
        Some(match self {
            Self::Claude => Place::Project(&[".mcp.json"]),
            Self::Codex => Place::Own(config_home()?, "config.toml"),
            Self::Cursor => Place::Own(home()?.join(".cursor"), "mcp.json"),
            Self::Zed => {
                let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
                let named = named.filter(|path| path.is_absolute() && cfg!(target_os = "linux"));
                let named = named.or_else(|| Some(home()?.join(".config")))?;
                Place::Own(named.join("zed"), "settings.json")
            }
            Self::Vscode => Place::Project(&[".vscode", "mcp.json"]),
        })
    }

    /// The member of the file that holds all servers.
    fn servers(self) -> &'static str {
        match self {
            Self::Claude | Self::Cursor => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::Vscode => "servers",
        }
    }
}

impl Entry<'_> {
    /// What the client is to have, as its settings say it.
    fn value(&self) -> Value {
        let Self { command, arguments, .. } = self;
        match self.client {
            Client::Claude | Client::Vscode => {
                json!({ "type": "stdio", "command": command, "args": arguments })
            }
            Client::Zed => {
                json!({ "source": "custom", "command": command, "args": arguments, "env": {} })
            }
            Client::Cursor | Client::Codex => json!({ "command": command, "args": arguments }),
        }
    }

    /// A whole file that has nothing else in it.
    fn snippet(&self) -> String {
        self.added_to("").unwrap_or_default()
    }

    /// The text of a file with the server in it.
    ///
    /// # Errors
    /// Why it cannot be added.
    fn added_to(&self, text: &str) -> Result<String, String> {
        match self.client {
            Client::Codex => self.added_to_toml(text),
            _ => jsonc::put(text, self.client.servers(), self.name, &self.value()),
        }
    }

    fn added_to_toml(&self, text: &str) -> Result<String, String> {
        use toml_edit::{DocumentMut, Item, Table, value};
        let mut document: DocumentMut = text
            .parse()
            .map_err(|error: toml_edit::TomlError| format!("it is no TOML: {}", error.message()))?;
        let mut servers = Table::new();
        servers.set_implicit(true);
        let servers = document.entry(self.client.servers()).or_insert(Item::Table(servers));
        let servers = servers.as_table_like_mut().ok_or("mcp_servers is not a table")?;
        if servers.get(self.name).is_none() {
            servers.insert(self.name, Item::Table(Table::new()));
        }
        let server = servers.get_mut(self.name).and_then(Item::as_table_like_mut);
        let server = server.ok_or_else(|| format!("mcp_servers.{} is not a table", self.name))?;
        server.insert("command", value(self.command));
        server.insert("args", value(self.arguments.iter().collect::<toml_edit::Array>()));
        Ok(document.to_string())
    }

    /// What the person is told.
    fn told(&self, path: &Path) -> String {
        let (path, snippet) = (path.display(), self.snippet());
        let by_program = match self.client {
            Client::Claude => {
                let words = [self.command.to_owned()].into_iter().chain(self.arguments.clone());
                let words: Vec<String> = words.collect();
                let words = sandgate_runtime::command_text(&words);
                format!(
                    "For all your projects, run:\n\n  claude mcp add --scope user {} -- {words}\n\nFor one \
                     project: ",
                    self.name
                )
            }
            Client::Codex => {
                "sandgate exec reads the same file, and does not start itself.\n\n".to_owned()
            }
            _ => String::new(),
        };
        format!("{by_program}Add this to {path}, or let --write do it:\n\n{snippet}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: Client) -> Entry<'static> {
        let arguments = ["mcp", "--sandbox", "read-only"].map(str::to_owned).to_vec();
        Entry { client, name: "sandgate", command: "/usr/bin/sandgate", arguments }
    }

    /// spec MCPS.55: Each client is told of the server in its own way.
    #[test]
    fn each_client_is_told_in_its_own_way() {
        for client in Client::value_variants() {
            let name = client.to_possible_value().unwrap().get_name().to_owned();
            insta::assert_snapshot!(name, entry(*client).told(Path::new("its/file")));
        }
    }

    /// spec MCPS.56: When a client's file is changed, nothing else in it is.
    #[test]
    fn nothing_else_in_a_file_changes() {
        let toml = "# mine\nmodel = \"x\" # this one\n\n[mcp_servers.other]\ncommand = 'o' # quoted\n\n[tools]\na = 1\n";
        let added = entry(Client::Codex).added_to(toml).unwrap();
        insta::assert_snapshot!("codex-added", added);
        assert_eq!(entry(Client::Codex).added_to(&added).unwrap(), added);
        let zed = "// Zed settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n    \
                   \"other\": { \"command\": \"o\", \"args\": [] }, // keep\n  },\n  \"vim_mode\": true,\n}\n";
        let added = entry(Client::Zed).added_to(zed).unwrap();
        insta::assert_snapshot!("zed-added", added);
        assert_eq!(entry(Client::Zed).added_to(&added).unwrap(), added);
        let cursor = "{\"mcpServers\":{\"sandgate\":{\"command\":\"old\",\"args\":[]},\"b\":{\"url\":\"u\"}},\"x\":[1,2]}";
        insta::assert_snapshot!("cursor-replaced", entry(Client::Cursor).added_to(cursor).unwrap());
        for (before, after) in [
            ("{\"a\":1}", "{\"a\":1,\n  \"servers\""),
            ("{\n  \"a\": 1 // one, and more\n}", "{\n  \"a\": 1, // one, and more\n  \"servers\""),
            ("{\n  \"a\": 1 /* a\n b */\n}", "{\n  \"a\": 1, /* a\n b */\n  \"servers\""),
            (
                "{\n  \"a\": 1 /* one, */ , /* a */ // b\r\n  // c\r\n}",
                "{\n  \"a\": 1 /* one, */ , /* a */ // b\n  \"servers\"",
            ),
            ("{ \"a\": 1 /* b */ }", "{ \"a\": 1, /* b */\n  \"servers\""),
            ("{ // none yet\n}", "{ // none yet\n  \"servers\""),
            ("{}", "{\n  \"servers\""),
        ] {
            let added = entry(Client::Vscode).added_to(before).unwrap();
            assert!(added.starts_with(after), "{added}");
            for comment in ["/*", "*/", "//"] {
                let count = |text: &str| text.matches(comment).count();
                assert_eq!(count(&added), count(before), "{added}");
            }
        }
        insta::assert_snapshot!(
            "vscode-beside",
            entry(Client::Vscode).added_to("{\n\t\"inputs\": []\n}\n").unwrap()
        );
    }

    /// spec MCPS.57: A file that is not in order is left as it is.
    #[test]
    fn a_file_that_is_not_in_order_is_left_as_it_is() {
        for broken in [
            "{",
            "[]",
            "{\"mcpServers\": []}",
            "{} {}",
            "{\"a\": 1 \"b\": 2}",
            "x",
            "{\"mcpServers\": {\"sandgate\": }}",
        ] {
            assert!(entry(Client::Cursor).added_to(broken).is_err(), "{broken}");
        }
        for broken in ["x", "mcp_servers = 1", "[mcp_servers]\nsandgate = 1"] {
            assert!(entry(Client::Codex).added_to(broken).is_err(), "{broken}");
        }
    }
}
