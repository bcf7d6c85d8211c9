//! A document store over HTTP on a Unix socket. Each document has a security context, and each
//! request is decided on by the SELinux policy that Tidegate enforces: the process that connected,
//! against the document. README.md beside it has the story.

mod client;
mod http;
mod rights;
mod server;
mod store;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A document store whose documents have labels of their own
#[derive(Debug, Parser)]
struct Cli {
    /// The store's socket
    #[arg(long, global = true, default_value = "/run/docstore.sock")]
    socket: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the documents of a directory
    Serve {
        /// Where they are kept
        directory: PathBuf,
        /// The context of the collection that new documents are made in [default: this process's own]
        #[arg(long)]
        collection: Option<String>,
    },
    /// Print a document
    Get {
        /// Its name
        name: String,
    },
    /// Write a document, which is made if there is none, from standard input
    Put {
        /// Its name
        name: String,
    },
    /// Remove a document
    Delete {
        /// Its name
        name: String,
    },
    /// Print a document each time that it changes, for as long as it may be read
    Follow {
        /// Its name
        name: String,
    },
    /// Print the context of a document
    Label {
        /// Its name
        name: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let socket = &cli.socket;
    let done = match &cli.command {
        Command::Serve {
            directory,
            collection,
        } => server::serve(socket, directory, collection.as_deref()).map(|()| true),
        Command::Get { name } => client::print(socket, "GET", name),
        Command::Put { name } => client::put(socket, name),
        Command::Delete { name } => client::print(socket, "DELETE", name),
        Command::Follow { name } => client::follow(socket, name),
        Command::Label { name } => client::label(socket, name),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("docstore: {e:#}");
            ExitCode::from(2)
        }
    }
}
