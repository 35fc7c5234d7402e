//! Which of a manifest's `[target.PLATFORM]` tables hold for the device.

/// The target that kernels are compiled for.
pub(crate) const TARGET: &str = "nvptx64-nvidia-cuda";

/// What `rustc --print cfg --target nvptx64-nvidia-cuda` says, as far as manifests ask.
const TARGET_CFG: [(&str, &str); 7] = [
    ("panic", "abort"),
    ("target_arch", "nvptx64"),
    ("target_endian", "little"),
    ("target_env", ""),
    ("target_os", "cuda"),
    ("target_pointer_width", "64"),
    ("target_vendor", "nvidia"),
];

/// Whether a platform, a target's name or `cfg(..)`, is the device. The error says what is wrong with the text.
pub(crate) fn is_device(platform: &str) -> Result<bool, String> {
    let Some(expression) = platform.strip_prefix("cfg") else {
        return Ok(platform == TARGET);
    };
    let refused = |wanted: &str| format!("`{platform}` is no platform: {wanted} is wanted");
    let mut rest = expression.trim_start();
    let opened = take(&mut rest, '(');
    let holds = holds(&mut rest).map_err(refused)?;
    if opened && take(&mut rest, ')') && rest.is_empty() {
        Ok(holds)
    } else {
        Err(refused("one pair of parentheses after `cfg`"))
    }
}

/// Whether the predicate at the beginning of `rest` holds; afterwards `rest` begins behind it.
fn holds(rest: &mut &str) -> Result<bool, &'static str> {
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    *rest = behind.trim_start();
    if name.is_empty() {
        return Err("a name");
    }
    if take(rest, '(') {
        let mut all = Vec::new();
        while !take(rest, ')') {
            all.push(holds(rest)?);
            if !take(rest, ',') && !rest.starts_with(')') {
                return Err("`,` or `)`");
            }
        }
        return match (name, all.as_slice()) {
            ("all", all) => Ok(all.iter().all(|&holds| holds)),
            ("any", all) => Ok(all.iter().any(|&holds| holds)),
            ("not", &[holds]) => Ok(!holds),
            _ => Err("`all(..)`, `any(..)`, or `not(..)` of one predicate"),
        };
    }
    if !take(rest, '=') {
        return Ok(name == "true");
    }
    let text = rest.strip_prefix('"').and_then(|text| text.split_once('"'));
    let (value, behind) = text.ok_or("text in quotes")?;
    *rest = behind.trim_start();
    Ok(TARGET_CFG.contains(&(name, value)))
}

/// Takes a character and the spaces behind it away; whether it was there.
fn take(rest: &mut &str, character: char) -> bool {
    match rest.strip_prefix(character) {
        Some(behind) => {
            *rest = behind.trim_start();
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_that_are_the_device() {
        for platform in [
            TARGET,
            "cfg(target_arch = \"nvptx64\")",
            "cfg(not(unix))",
            "cfg(not(target_arch = \"x86_64\"))",
            "cfg(all(target_os = \"cuda\", not(windows),))",
            "cfg( any( unix , target_pointer_width = \"64\" ) )",
            "cfg(all())",
            "cfg(true)",
        ] {
            assert_eq!(is_device(platform), Ok(true), "{platform}");
        }
    }

    #[test]
    fn platforms_that_are_not() {
        for platform in [
            "x86_64-unknown-linux-gnu",
            "cfg(unix)",
            "cfg(false)",
            "cfg(any())",
            "cfg(not(target_arch = \"nvptx64\"))",
            "cfg(all(target_os = \"cuda\", target_feature = \"sse2\"))",
        ] {
            assert_eq!(is_device(platform), Ok(false), "{platform}");
        }
    }

    #[test]
    fn what_is_no_platform_is_refused_with_what_was_wanted() {
        for (platform, wanted) in [
            ("cfg(", "a name"),
            ("cfg(unix", "parentheses"),
            ("cfg(unix))", "parentheses"),
            ("cfg unix", "parentheses"),
            ("cfg(target_os = cuda)", "text in quotes"),
            ("cfg(not(unix, windows))", "of one predicate"),
            ("cfg(some(unix))", "`all(..)`"),
            ("cfg(all(unix windows))", "`,` or `)`"),
        ] {
            let error = is_device(platform).unwrap_err();
            assert!(
                error.contains(platform) && error.contains(wanted),
                "{error}"
            );
        }
    }
}
