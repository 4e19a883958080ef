//! `--explain-config`: what each line of a configuration does.

use crate::cli::Options;

/// Prints the settings that were given, by whether they do anything. Values are left out: some are passwords.
pub fn explain(options: &Options) {
    println!("{}, as {} would read it", options.version().title(), options.identity.server_name());
    for (name, has_effect) in &options.given {
        println!("{} {name}", if *has_effect { "in effect  " } else { "no effect  " });
    }
    for warning in &options.warnings {
        println!("warning     {warning}");
    }
}
