//! The `sandgate` program: arguments, exit codes, and what a person sees.
//!
//! Whatever is decided or done, `runtime` does it. This crate reads the command line, hands over a
//! request, and shows what comes back.

#![forbid(unsafe_code)]

mod acp;
mod agent;
#[cfg(unix)]
mod approvals;
mod arguments;
mod audit;
mod call;
mod config;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod daemon;
mod decide;
mod demo;
mod doctor;
mod evidence;
mod exec;
mod exit;
mod generate;
mod linux_sandbox;
#[cfg(unix)]
mod live;
mod mcp;
mod notes;
mod open;
mod patch;
mod policy;
#[cfg(test)]
mod reference;
mod review;
mod run;
mod sandbox;
mod say;
mod serve;
mod session;
mod sessions;
mod settings;
mod signals;
mod telemetry;
mod trust;
mod tui;
mod wrap;
mod writer;

use arguments::Verb;
use std::process::ExitCode;

/// What people install is linked with musl, whose own is slow.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let head_start = sandbox::head_start();
    let asked = match linux_sandbox::is_meant() {
        true => linux_sandbox::read().map(Verb::Sandbox),
        false => arguments::read(),
    };
    match asked {
        Ok(Verb::Tui(arguments)) => tui::tui(*arguments),
        Ok(Verb::Run(arguments)) => run::run(arguments),
        Ok(Verb::Exec(arguments)) => exec::exec(arguments),
        Ok(Verb::Review(arguments)) => review::review(arguments),
        Ok(Verb::Sessions(arguments)) => sessions::sessions(&arguments),
        Ok(Verb::Acp(arguments)) => acp::acp(arguments),
        Ok(Verb::Call(arguments)) => call::call(&arguments),
        Ok(Verb::Mcp(arguments)) => mcp::mcp(arguments),
        Ok(Verb::Serve(arguments)) => serve::serve(arguments),
        Ok(Verb::Patch(arguments)) => patch::patch(&arguments),
        Ok(Verb::Sandbox(arguments)) => sandbox::sandbox(arguments, head_start),
        Ok(Verb::Policy(arguments)) => policy::policy(arguments),
        #[cfg(unix)]
        Ok(Verb::Session(arguments)) => live::session(&arguments),
        #[cfg(unix)]
        Ok(Verb::Attach(arguments)) => live::attach(&arguments),
        #[cfg(unix)]
        Ok(Verb::Approvals(arguments)) => approvals::approvals(&arguments),
        #[cfg(unix)]
        Ok(Verb::Console(arguments)) => console::console(&arguments),
        #[cfg(unix)]
        Ok(Verb::Daemon(arguments)) => daemon::daemon(&arguments),
        Ok(Verb::Audit(arguments)) => audit::audit(&arguments),
        Ok(Verb::Config(arguments)) => config::config(&arguments),
        Ok(Verb::Trust(arguments)) => trust::trust(&arguments),
        Ok(Verb::Demo(arguments)) => demo::demo(&arguments),
        Ok(Verb::Doctor(arguments)) => doctor::doctor(&arguments),
        Ok(Verb::Completions(arguments)) => {
            generate::completions(&arguments, arguments::definition())
        }
        Ok(Verb::Man(arguments)) => generate::man(&arguments, arguments::definition()),
        Err(error) => {
            // Help and version come this way too; they are no errors and go to standard output.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE))
        }
    }
}
