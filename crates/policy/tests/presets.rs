//! The presets compile without a warning and mean what they say.

use tidegate_bundle::{Attrs, Policy};
use tidegate_policy::{FRAGMENTS, PRESETS, map};

/// What a preset says of a path: `level attribute…`.
fn says(policy: &Policy, path: &str) -> String {
    let rule = policy.lookup(path.as_bytes());
    let attrs = rule.attrs - Attrs::EXPLICIT;
    let mut words = vec![policy.levels[usize::from(rule.level)].clone()];
    words.extend(attrs.iter_names().map(|(name, _)| name.to_lowercase()));
    words.join(" ")
}

fn check(preset: &str, expected: &[(&str, &str)]) {
    let policy = map::compile_preset(preset).expect("it compiles").policy;
    for (path, says) in expected {
        assert_eq!(self::says(&policy, path), *says, "{preset}: {path}");
    }
}

#[test]
fn every_preset_compiles_without_a_warning() {
    for preset in PRESETS {
        let compiled = map::compile_preset(preset.name)
            .unwrap_or_else(|errors| panic!("{:?}", miette::Report::new(errors)));
        let warnings: Vec<_> = compiled.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings.is_empty(), "{}: {warnings:#?}", preset.name);
        assert_eq!(compiled.policy.name, preset.name);
        let bundle = compiled.policy.to_bundle();
        assert_eq!(Policy::from_bundle(&bundle), Ok(compiled.policy));
    }
}

#[test]
fn a_fragment_is_no_preset() {
    for fragment in FRAGMENTS {
        let errors = map::compile_preset(fragment.name).unwrap_err();
        assert!(errors.findings[0].to_string().contains("unknown preset"));
    }
}

#[test]
fn classic_is_lomacs_map() {
    check(
        "classic",
        &[
            ("/", "high"),
            ("/etc/passwd", "high"),
            ("/home", "high"),
            ("/home/ann/.profile", "low"),
            ("/home/ftp/pub", "high"),
            ("/mnt/usb/file", "low"),
            ("/var/lib/game/scores", "low"),
            ("/var/lib/dpkg/status", "high"),
            ("/var/mail/ann", "low"),
            ("/tmp", "high creator"),
            ("/tmp/a/b", "high creator"),
            ("/tmp/.X11-unix", "high creator"),
            ("/tmp/.X11-unix/X0", "high lowwrite"),
            ("/run/utmp", "high lowwrite"),
            ("/dev/mem", "high lownoopen"),
            ("/dev/ttyUSB0", "high lowwrite"),
            ("/usr/sbin/dhclient", "high nonetdemote"),
        ],
    );
}

#[test]
fn server_protects_the_system_and_its_content() {
    check(
        "server",
        &[
            ("/usr/bin/ls", "system"),
            ("/var/www/html/index.php", "service"),
            ("/srv/git/x", "service"),
            ("/var/lib", "system"),
            ("/var/lib/postgresql/17/main/base", "service"),
            ("/var/lib/dpkg/info/bash.list", "system"),
            ("/var/cache/apt/archives/partial", "system"),
            ("/var/cache/nginx/x", "service"),
            ("/var/spool/cron/crontabs/ann", "system"),
            ("/var/spool/postfix/active/1", "untrusted"),
            ("/var/log", "system"),
            ("/var/log/syslog", "system creator"),
            ("/var/log/nginx", "system creator"),
            ("/var/log/nginx/access.log", "untrusted"),
            ("/var/log/php8.4-fpm.log.1.gz", "untrusted"),
            ("/var/log/journal/x/system.journal", "system"),
            ("/var/log/wtmp", "system lowwrite"),
            ("/home", "system"),
            ("/home/ann", "service"),
            ("/home/ann/.ssh/authorized_keys", "service lownoopen"),
            ("/root/.bashrc", "system lownoopen"),
            ("/run/user/1000", "service creator"),
            ("/run/php/php8.4-fpm.sock", "untrusted"),
            ("/usr/lib/postgresql/17/bin/postgres", "system nodemote"),
            ("/run/postgresql/.s.PGSQL.5432", "service lowwrite"),
            ("/var/backups/shop.sql", "service"),
            ("/usr/lib/openssh/sshd-session", "system nodemote"),
            ("/usr/lib/apt/methods/http", "system nonetdemote"),
            ("/usr/lib/systemd/systemd", "system nodemote"),
            ("/dev/sda1", "system lownoopen"),
            ("/dev/shm/x", "system creator"),
            ("/dev/dri/renderD128", "system neutral"),
            ("/var/lib/dpkg/lock-frontend", "system lownoopen"),
            ("/var/cache/apt/archives/lock", "system lownoopen"),
            ("/dev/dri/card0", "system lownoopen"),
            ("/dev/snd/pcmC0D0p", "system neutral"),
            ("/dev/snd/seq", "system lownoopen"),
        ],
    );
}

#[test]
fn workstation_protects_the_user_from_what_was_downloaded() {
    check(
        "workstation",
        &[
            ("/home/ann/.bashrc", "user"),
            ("/home/ann/.local/bin/tool", "user"),
            ("/home/ann/.ssh/id_ed25519", "user lownoopen"),
            ("/home/ann/.npmrc", "user lownoopen"),
            ("/home/ann/.mozilla/firefox/x/key4.db", "user lownoopen"),
            ("/home/ann/.cargo/bin/tool", "user"),
            ("/home/ann/.cargo/registry/src/x", "user creator"),
            ("/home/ann/.cargo/credentials.toml", "user lownoopen"),
            ("/home/ann/src/project/node_modules/x", "user creator"),
            ("/home/ann/Downloads/tool.tar.gz", "untrusted"),
            ("/home/ann/src/untrusted/clone/Makefile", "untrusted"),
            ("/home/ann/.npm/_logs/x", "untrusted"),
            ("/home/ann/.local/share/containers/x", "untrusted"),
            ("/run/user/1000/containers/auth.json", "user lownoopen"),
            ("/run/postgresql/.s.PGSQL.5432", "user"),
            ("/usr/lib/systemd/systemd-executor", "system nodemote"),
            ("/dev/hidraw0", "user lownoopen"),
            ("/dev/video0", "user lownoopen"),
            ("/dev/dri/card0", "user lownoopen"),
            ("/dev/dri/renderD128", "system neutral"),
            ("/dev/snd/seq", "user"),
            ("/home/ann/.cache/pip/x", "user creator"),
            ("/home/ann/.cache/fontconfig/x", "user"),
            ("/home/ann/.kube/config", "user lownoopen"),
            ("/home/ann/.kube/cache/x", "user creator"),
            ("/root/.ssh/id_ed25519", "system lownoopen"),
            ("/run/user/1000/bus", "user creator"),
            ("/run/user/1000/wayland-0", "user lowwrite"),
            ("/run/dbus/system_bus_socket", "user"),
            ("/tmp/.X11-unix/X0", "user"),
            ("/media/ann/stick/x", "untrusted"),
            ("/usr/bin/ssh", "system nonetdemote"),
        ],
    );
}

#[test]
fn no_preset_trusts_a_network() {
    for preset in PRESETS {
        assert!(
            map::compile_preset(preset.name)
                .unwrap()
                .policy
                .networks
                .is_empty()
        );
    }
}

#[test]
fn the_manuals_examples_compile() {
    let manual = include_str!("../../../docs/reference/map-language.md");
    let blocks = manual.split("```").skip(1).step_by(2);
    let maps: Vec<_> = blocks.filter(|it| !it.starts_with("text")).collect();
    assert_eq!(maps.len(), 2);
    for map in maps {
        let compiled = map::compile_str("manual", map)
            .unwrap_or_else(|errors| panic!("{:?}", miette::Report::new(errors)));
        assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
    }
}
