//! `redlatch tls-files`: certificates for tests.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Make an authority, a server's certificate and a client's, for tests.
///
/// Writes ca.crt, ca.key, server.crt, server.key, client.crt and client.key, in PEM form. The server's certificate is good for
/// localhost, 127.0.0.1 and ::1, and for the names that --host adds.
#[derive(Parser)]
#[command(name = "redlatch tls-files", max_term_width = 100)]
#[command(after_help = "\
Examples:
  redlatch tls-files certs
  redlatch --tls-port 6380 --tls-cert-file certs/server.crt --tls-key-file certs/server.key \\
           --tls-ca-cert-file certs/ca.crt
  redis-cli -p 6380 --tls --cacert certs/ca.crt --cert certs/client.crt --key certs/client.key PING")]
struct Cli {
    /// The directory to write to. It is made if it does not exist; files in it are not overwritten.
    directory: PathBuf,

    /// A further host name or address of the server. Can be repeated.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// The common name of the client.
    #[arg(long, value_name = "NAME", default_value = "client")]
    client: String,
}

/// Runs the subcommand.
pub fn main(args: Vec<String>) -> ExitCode {
    let cli = match super::parse::<Cli>(args) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    match write_all(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("redlatch: {why}");
            ExitCode::from(2)
        }
    }
}

fn write_all(cli: &Cli) -> Result<(), String> {
    let directory = &cli.directory;
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let hosts =
        ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).chain(cli.host.iter().cloned());
    let why = |error: rcgen::Error| error.to_string();

    let key = KeyPair::generate().map_err(why)?;
    let mut params = named("Redlatch test authority", Vec::new()).map_err(why)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let certificate = params.self_signed(&key).map_err(why)?;
    write_pair(directory, "ca", &certificate.pem(), &key)?;
    let authority = Issuer::new(params, key);

    let issue = |file: &str, name: &str, hosts: Vec<String>, purpose| {
        let key = KeyPair::generate().map_err(why)?;
        let mut params = named(name, hosts).map_err(why)?;
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &authority).map_err(why)?;
        write_pair(directory, file, &certificate.pem(), &key)
    };
    issue("server", "localhost", hosts.collect(), ExtendedKeyUsagePurpose::ServerAuth)?;
    issue("client", &cli.client, Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)
}

/// Returns what a certificate says of its owner.
fn named(name: &str, hosts: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn write_pair(directory: &Path, name: &str, certificate: &str, key: &KeyPair) -> Result<(), String> {
    for (suffix, text, mode) in [("crt", certificate, 0o644), ("key", &key.serialize_pem(), 0o600)] {
        let path = directory.join(format!("{name}.{suffix}"));
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
