//! Values of the environment that nobody should read over a shoulder.

/// Where one of these is part of a name, the value is a secret.
const NAMES: [&str; 6] = ["TOKEN", "KEY", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL"];

/// As long for every secret, so that its length is none of what is told.
const MASK: &str = "********";

/// `NAME=value` with the value masked where it looks like a secret.
pub(super) fn masked(entry: &str) -> String {
    let Some((name, value)) = entry.split_once('=') else { return entry.to_owned() };
    let upper = name.to_uppercase();
    if !value.is_empty() && NAMES.iter().any(|word| upper.contains(word)) {
        return format!("{name}={MASK}");
    }
    // `scheme://user:password@host`.
    let password = value.split_once("://").and_then(|(_, rest)| {
        let (login, _) = rest.split_once('/').unwrap_or((rest, "")).0.rsplit_once('@')?;
        Some(login.split_once(':')?.1)
    });
    match password.filter(|password| !password.is_empty()) {
        Some(password) => format!("{name}={}", value.replacen(&format!(":{password}@"), &format!(":{MASK}@"), 1)),
        None => entry.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_masked() {
        for secret in ["HF_TOKEN=hf_abc", "wandb_api_key=1", "PGPASSWORD=x", "AWS_SECRET_ACCESS_KEY=y"] {
            let (name, _) = secret.split_once('=').unwrap();
            assert_eq!(masked(secret), format!("{name}=********"));
        }
        assert_eq!(masked("DB=postgres://ana:a:b@host/db?x=@y"), "DB=postgres://ana:********@host/db?x=@y");
        for open in ["PATH=/bin", "HF_TOKEN=", "PROXY=http://host:80/a:b@c", "odd", "MAIL=ana@example.org"] {
            assert_eq!(masked(open), open);
        }
    }
}
