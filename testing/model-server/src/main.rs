//! Serves a script to whoever asks, until its standard input ends.
//!
//! The first line of its output is where it is. Each request that the real service would have refused
//! is a line on standard error, and the exit code says whether there was any.

#![forbid(unsafe_code)]

use clap::Parser;
use sandgate_model_server::{ModelServer, Script};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// A model server that does what a script says.
#[derive(Debug, Parser)]
#[command(name = "sandgate-model-server")]
struct Arguments {
    /// The script: a JSON array of what the model does in each line.
    script: PathBuf,
    /// The port on 127.0.0.1; a free one otherwise.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse();
    let server = ModelServer::listen(arguments.port, Script::read(&arguments.script)?)?;
    println!("{}", server.url());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let violations = server.violations();
    for violation in &violations {
        eprintln!("{violation}");
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
