//! Masking of secret values in a process's environment, so that other people in front of the screen
//! cannot read them.

/// Parts of variable names that indicate a secret value.
const SECRET_NAMES: [&str; 9] = [
    "TOKEN",
    "KEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "_PASS",
    "_PWD",
    "SECRET",
    "CREDENTIAL",
];

/// The replacement for every secret value. The fixed length does not reveal the length of the
/// secret.
const MASK: &str = "********";

/// Returns the entry `NAME=value`, with the value masked if it may be a secret.
pub(super) fn mask_secret(entry: &str) -> String {
    let Some((name, value)) = entry.split_once('=') else {
        return entry.to_owned();
    };
    let upper = name.to_uppercase();
    if !value.is_empty() && SECRET_NAMES.iter().any(|word| upper.contains(word)) {
        return format!("{name}={MASK}");
    }
    format!("{name}={}", mask_passwords(value))
}

/// Masks the password in each URL of the form `scheme://user:password@host`.
fn mask_passwords(value: &str) -> String {
    let is_of_scheme =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
    let (mut masked, mut rest) = (String::new(), value);
    while let Some(at) = rest.find("://") {
        let (scheme, behind) = rest.split_at(at + "://".len());
        let end = behind.find("://").map_or(behind.len(), |next| {
            behind[..next].trim_end_matches(is_of_scheme).len()
        });
        let (address, others) = behind.split_at(end);
        let (host, _) = address.split_once('/').unwrap_or((address, ""));
        masked += scheme;
        match host
            .rsplit_once('@')
            .and_then(|(login, _)| login.split_once(':'))
        {
            Some((user, password)) if !password.is_empty() => {
                masked.extend([user, ":", MASK, &address[user.len() + 1 + password.len()..]]);
            }
            _ => masked += address,
        }
        rest = others;
    }
    masked + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_masked() {
        for secret in [
            "DB_PASS=x",
            "GPG_PASSPHRASE=x",
            "MYSQL_PWD=x",
            "HF_TOKEN=hf_abc",
            "wandb_api_key=1",
            "PGPASSWORD=x",
            "AWS_SECRET_ACCESS_KEY=y",
        ] {
            let (name, _) = secret.split_once('=').unwrap();
            assert_eq!(mask_secret(secret), format!("{name}=********"));
        }
        assert_eq!(
            mask_secret("DB=postgres://ana:a:b@host/db?x=@y"),
            "DB=postgres://ana:********@host/db?x=@y"
        );
        for (brokers, masked_brokers) in [
            (
                "amqp://a:p1@h1;amqp://b:p2@h2",
                "amqp://a:********@h1;amqp://b:********@h2",
            ),
            (
                "redis://:p@h1/0,http://h2/x rediss+x://b:p@q@h2/",
                "redis://:********@h1/0,http://h2/x rediss+x://b:********@h2/",
            ),
        ] {
            assert_eq!(
                mask_secret(&format!("BROKER_URL={brokers}")),
                format!("BROKER_URL={masked_brokers}")
            );
        }
        for open in [
            "PWD=/root",
            "COMPASS=north",
            "URL=a://b://c",
            "PATH=/bin",
            "HF_TOKEN=",
            "PROXY=http://host:80/a:b@c",
            "odd",
            "MAIL=ana@example.org",
        ] {
            assert_eq!(mask_secret(open), open);
        }
    }
}
