//! What clients ask of the driver: CONFIG REWRITE, ACL SAVE, ACL LOAD, and MIGRATE to another server. Nobody else is served
//! meanwhile, as in Redis.

use std::io;
use std::path::Path;

use super::migrate;
use redlatch_core::node::Node;
use redlatch_core::node::errands::Task;

/// Does what a client of a node asks for. Returns what was read or answered.
///
/// # Errors
/// Why it cannot be done, as the client is told.
pub fn run(task: &Task, node: &Node) -> Result<Vec<u8>, String> {
    let users = node.config.get("aclfile").unwrap_or_default();
    match task {
        Task::RewriteConfig => rewrite(node).map_err(|error| {
            let why = without_number(&error);
            tracing::warn!("CONFIG REWRITE failed: {why}");
            format!("Rewriting config file: {why}")
        }),
        Task::SaveUsers => replace(Path::new(users), &node.acl.to_file()).map(|()| Vec::new()).map_err(|error| {
            tracing::warn!("Saving the users to {users} failed: {error}");
            "There was an error trying to save the ACLs. Please check the server logs for more information".to_owned()
        }),
        Task::Migrate(migration) => migrate::send(migration),
        Task::LoadUsers => std::fs::read(users).map_err(|error| {
            format!("Error loading ACLs, opening file '{users}': {}", without_number(&error))
        }),
    }
}

fn rewrite(node: &Node) -> io::Result<Vec<u8>> {
    let path = Path::new(node.config.config_file.as_deref().unwrap_or_default());
    let old = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    replace(path, &node.to_config_file(&old))?;
    tracing::info!("CONFIG REWRITE executed with success.");
    Ok(Vec::new())
}

/// Writes a file under another name first, so that it is whole at any time.
pub fn replace(path: &Path, data: &[u8]) -> io::Result<()> {
    let written = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&written, data)?;
    std::fs::rename(&written, path).inspect_err(|_| drop(std::fs::remove_file(&written)))
}

/// Returns the text of an error of the system as C programs print it, without its number.
pub fn without_number(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}
