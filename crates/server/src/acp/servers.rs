//! MCP servers that the editor names.
//!
//! Editors take such entries from the settings of a project too, so that nobody may have looked at one. Programs are
//! started through the gate, after the person was asked, in a cage that reads and does nothing else. An address would
//! be talked with by us, outside of any cage and with headers that we have from who knows where, and is refused.

use agent_client_protocol::v1::schema::{McpServer, McpServerStdio};
use sandgate_config::{McpServer as Program, McpServerSettings, ServerName, VariableName};
use sandgate_protocol::visible_line;

/// How many are used.
const MOST_SERVERS: usize = 32;

/// The servers that can be started, and sentences about those that cannot.
pub(super) fn programs(servers: Vec<McpServer>) -> (Vec<Program>, Vec<String>) {
    let (mut programs, mut notes) = (Vec::new(), Vec::new());
    let more = servers.len().saturating_sub(MOST_SERVERS);
    if more > 0 {
        notes.push(format!("{more} MCP servers of the editor are too many, and are not used"));
    }
    for server in servers.into_iter().take(MOST_SERVERS) {
        let (name, program) = match server {
            McpServer::Stdio(server) => (server.name.clone(), program(server)),
            McpServer::Http(server) => (server.name, Err(AN_ADDRESS.to_owned())),
            McpServer::Sse(server) => (server.name, Err(AN_ADDRESS.to_owned())),
            _ => ("of another kind".to_owned(), Err("it is not known how to reach it".to_owned())),
        };
        match program {
            Ok(program) => programs.push(program),
            Err(why) => {
                let name: String = name.chars().take(100).collect();
                notes.push(format!("the editor's MCP server {name} is not used: {why}"));
            }
        }
    }
    (programs, notes)
}

/// Why a server at an address is not used.
const AN_ADDRESS: &str =
    "only programs are; write an address into your settings (docs/mcp-servers.md)";

fn program(server: McpServerStdio) -> Result<Program, String> {
    let name = ServerName::try_from(named(&server.name))?;
    let command = server.command.into_os_string().into_string();
    let mut settings = McpServerSettings {
        command: Some(command.map_err(|_| "its command is not text".to_owned())?),
        args: Some(server.args),
        ..McpServerSettings::default()
    };
    for variable in server.env {
        let name = VariableName::try_from(variable.name.clone())
            .map_err(|_| format!("{} is no variable", visible_line(&variable.name)))?;
        settings.env.insert(name, variable.value);
    }
    Program::new(&name, &settings).map_err(|error| error.to_string())
}

/// Editors name servers for people, and the names of tools begin with the name of their server.
fn named(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    name.chars().map(|letter| if fits(letter) { letter } else { '-' }).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol::v1::schema::{EnvVariable, McpServerHttp, McpServerSse};
    use sandgate_config::McpTransport;
    use sandgate_protocol::SandboxPolicy;

    /// spec ACP.13: A server at an address that the editor names is not used, nor one that makes no sense, and the
    /// person is told which and why.
    #[test]
    fn only_programs_are_taken() {
        let stdio = |name: &str| McpServerStdio::new(name, "/bin/server");
        let servers = vec![
            McpServer::Stdio(stdio("My files").args(vec!["-y".to_owned()])),
            McpServer::Http(McpServerHttp::new("far", "https://example.com/mcp")),
            McpServer::Sse(McpServerSse::new("old", "http://127.0.0.1:1/sse")),
            McpServer::Stdio(stdio("")),
            McpServer::Stdio(stdio("odd").env(vec![EnvVariable::new("A=B", "c")])),
        ];
        let (programs, notes) = programs(servers);
        assert_eq!(programs.len(), 1);
        assert_eq!(programs[0].name.as_str(), "My-files");
        let McpTransport::Stdio { sandbox, env_vars, cwd, .. } = &programs[0].transport else {
            panic!("{programs:?}")
        };
        assert_eq!((sandbox, env_vars.len(), cwd), (&SandboxPolicy::ReadOnly, 0, &None));
        let said =
            ["far is not used: only programs", "old is not used: only", " is not used", "A=B"];
        assert_eq!(notes.len(), said.len(), "{notes:?}");
        for (note, said) in notes.iter().zip(said) {
            assert!(note.contains(said), "{note}");
        }
    }

    #[test]
    fn there_are_only_so_many() {
        let server = |n| McpServer::Stdio(McpServerStdio::new(format!("s{n}"), "/bin/server"));
        let (programs, notes) = programs((0..40).map(server).collect());
        assert_eq!((programs.len(), notes.len()), (MOST_SERVERS, 1));
    }
}
