//! Checks of parameters that are texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ConfigError;
use crate::version::Version;

/// Checks the value of a text parameter.
///
/// # Errors
///
/// Fails with Redis's reason if the release refuses the value.
pub fn check(name: &str, text: &str, version: Version) -> Result<(), ConfigError> {
    let refused = match name {
        "cluster-announce-client-ipv4" if !text.is_empty() && text.parse::<Ipv4Addr>().is_err() => {
            "Invalid IPv4 address"
        }
        "cluster-announce-client-ipv6" if !text.is_empty() && text.parse::<Ipv6Addr>().is_err() => {
            "Invalid IPv6 address"
        }
        "cluster-announce-hostname"
            if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.') =>
        {
            "Hostnames may only contain alphanumeric characters, hyphens or dots"
        }
        "cluster-announce-human-nodename" if !is_node_name(text, version) => {
            "Announced human node name contained invalid character"
        }
        "cluster-announce-ip"
            if version >= Version::V8_4 && !text.is_empty() && text.parse::<IpAddr>().is_err() =>
        {
            "Cluster announce IP must be a valid IPv4 or IPv6 address"
        }
        "cluster-announce-ip"
            if version.is_valkey_since(Version::Valkey9_0) && !is_node_name(text, version) =>
        {
            "cluster-announce-ip contains invalid character"
        }
        "latency-tracking-info-percentiles" => return check_percentiles(text),
        "oom-score-adj-values" => return check_scores(text),
        "proc-title-template" if !is_template(text) => {
            "template format is invalid or contains unknown variables"
        }
        _ => return Ok(()),
    };
    Err(refused.into())
}

fn is_node_name(text: &str, version: Version) -> bool {
    const REFUSED: &str = "!#$%&()*+;<>?@[]^{|}~";
    let refuses_blanks = version >= Version::V8_0 || version.is_valkey_since(Version::Valkey8_1);
    !text.chars().any(|c| REFUSED.contains(c) || refuses_blanks && c == ' ')
}

fn check_percentiles(text: &str) -> Result<(), ConfigError> {
    for word in text.split(' ').filter(|_| !text.is_empty()) {
        let percentile: f64 =
            word.parse().map_err(|_| "Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&percentile) {
            return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
        }
    }
    Ok(())
}

fn check_scores(text: &str) -> Result<(), ConfigError> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    let is_score = |word: &&str| word.parse::<i32>().is_ok_and(|score| (-2000..=2000).contains(&score));
    if !words.iter().all(is_score) {
        return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
    }
    Ok(())
}

/// Returns whether a template names known variables alone, and is not empty without the title of the process.
fn is_template(text: &str) -> bool {
    const VARIABLES: [&str; 7] =
        ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default();
    let variables: Option<Vec<(&str, &str)>> = parts.map(|part| part.split_once('}')).collect();
    variables.is_some_and(|variables| {
        let is_known = variables.iter().all(|(name, _)| VARIABLES.contains(name));
        let shows = variables.iter().any(|(name, rest)| *name != "title" || !rest.trim().is_empty());
        is_known && (shows || !first.trim().is_empty())
    })
}
