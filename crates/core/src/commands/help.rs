//! The HELP subcommands, generated from the rows of commands.

use super::ctx::Ctx;
use super::table;
use crate::error::{self, Outcome};

/// Replies with the subcommands of the command that was called, and their summaries.
pub fn reply(ctx: &mut Ctx) -> Outcome {
    let version = ctx.version();
    let Some(container) = table::find_by_name(ctx.argv[0], version) else {
        return Err(error::unknown_command(ctx.argv, version));
    };
    let name = container.name.to_ascii_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for row in container.subcommands {
        lines.push(row.name[container.name.len() + 1..].to_ascii_uppercase());
        lines.push(format!("    {}", row.summary));
    }
    ctx.reply.array(lines.len());
    for line in lines {
        ctx.reply.status(&line);
    }
    Ok(())
}
