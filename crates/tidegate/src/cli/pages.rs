//! Each command's examples, the files that it uses, and where to read on.

use tidegate_manual::Page;
use tidegated::paths;

/// A page for the program, and one for each command.
pub const PAGES: &[Page] = &[
    Page {
        command: "",
        examples: &[
            ("tidegate doctor", "say whether this machine can enforce"),
            (
                "tidegate start --preset workstation --permissive",
                "record what this policy would refuse",
            ),
            ("tidegate why", "explain the newest refusal"),
            (
                "tidegate help learn",
                "print the options and examples of a command",
            ),
        ],
        files: &[
            paths::POLICY,
            "/etc/default/tidegate",
            paths::LOG,
            paths::GIVEN,
            paths::LAST,
            paths::BUNDLES,
            "/run/tidegate/tidegate.sock",
            "/sys/fs/bpf/tidegate",
        ],
        see: &[
            "tidegate-install(7)",
            "tidegate-enforcing(7)",
            "tidegate-lomac(7)",
            "tidegate-troubleshooting(7)",
            "tidegate.plm(5)",
            "tidegate.caps(5)",
        ],
    },
    Page {
        command: "doctor",
        examples: &[(
            "tidegate doctor",
            "say what enforcement needs, and how to get what is missing",
        )],
        files: &[],
        see: &["tidegate-start(1)", "tidegate-install(7)"],
    },
    Page {
        command: "census",
        examples: &[(
            "tidegate census --undecided",
            "list what this kernel has and no version of Tidegate was tried with",
        )],
        files: &[],
        see: &["tidegate-doctor(1)"],
    },
    Page {
        command: "check",
        examples: &[
            (
                "tidegate check /etc/tidegate/policy.plm",
                "say what is wrong with a map",
            ),
            (
                "tidegate check --preset server --path /var/www",
                "say which level a path has, and by which line",
            ),
            (
                "tidegate check --preset server --profile /etc/apparmor.d",
                "compile profiles, and name rules that are not enforced",
            ),
            (
                "tidegate check --caps tools.caps",
                "say what each subject of a capability file may do",
            ),
        ],
        files: &[paths::POLICY],
        see: &[
            "tidegate-compile(1)",
            "tidegate-start(1)",
            "tidegate.plm(5)",
            "tidegate.caps(5)",
        ],
    },
    Page {
        command: "compile",
        examples: &[
            (
                "tidegate compile policy.plm -o policy.bundle",
                "make a bundle of a map",
            ),
            (
                "tidegate compile --preset server --te /etc/selinux/default -o policy.bundle",
                "make one with a SELinux policy in it",
            ),
        ],
        files: &[],
        see: &["tidegate-check(1)", "tidegate-start(1)", "tidegate.plm(5)"],
    },
    Page {
        command: "start",
        examples: &[
            (
                "tidegate start --preset workstation --permissive",
                "record what the preset would refuse, and refuse nothing",
            ),
            ("tidegate start", "put the machine's policy in force"),
            (
                "tidegate start --preset server --profile /etc/apparmor.d",
                "enforce AppArmor's profiles beside a preset",
            ),
        ],
        files: &[
            paths::POLICY,
            "/etc/default/tidegate",
            paths::LOG,
            paths::GIVEN,
            paths::LAST,
            paths::PROGRAM,
            "/sys/fs/bpf/tidegate",
        ],
        see: &[
            "tidegate-stop(1)",
            "tidegate-reload(1)",
            "tidegate-status(1)",
            "tidegate-enforcing(7)",
            "tidegate.plm(5)",
        ],
    },
    Page {
        command: "stop",
        examples: &[("tidegate stop", "end enforcement, as root at the top level")],
        files: &["/run/tidegate/admin.sock", "/sys/fs/bpf/tidegate"],
        see: &["tidegate-start(1)", "tidegate-enforcing(7)"],
    },
    Page {
        command: "reload",
        examples: &[
            (
                "tidegate reload",
                "read again the files that named the policy in force",
            ),
            (
                "tidegate reload --permissive",
                "stop refusing until the next reload; the log goes on",
            ),
            (
                "tidegate reload --policy /etc/tidegate/policy.plm --profile /etc/apparmor.d",
                "put another map and other profiles in force",
            ),
        ],
        files: &[paths::POLICY, "/run/tidegate/admin.sock"],
        see: &["tidegate-status(1)", "tidegate-start(1)", "tidegate.plm(5)"],
    },
    Page {
        command: "getsebool",
        examples: &[(
            "tidegate getsebool httpd_can_network_connect",
            "say whether a boolean is on",
        )],
        files: &["/run/tidegate/tidegate.sock"],
        see: &["tidegate-setsebool(1)", "tidegate-seinfo(1)"],
    },
    Page {
        command: "setsebool",
        examples: &[(
            "tidegate setsebool httpd_can_network_connect=off",
            "take back what a boolean allows, from running processes as well",
        )],
        files: &["/run/tidegate/admin.sock"],
        see: &["tidegate-getsebool(1)", "tidegate-reload(1)"],
    },
    Page {
        command: "status",
        examples: &[(
            "tidegate status",
            "print policy, mode, levels, daemon and tables",
        )],
        files: &["/run/tidegate/tidegate.sock"],
        see: &[
            "tidegate-ps(1)",
            "tidegate-stats(1)",
            "tidegate-exporter(1)",
        ],
    },
    Page {
        command: "stats",
        examples: &[(
            "tidegate stats",
            "print how often the caches of object managers answered",
        )],
        files: &["/run/tidegate/tidegate.sock"],
        see: &["tidegate-status(1)", "tidegate-object-managers(7)"],
    },
    Page {
        command: "run",
        examples: &[
            (
                "tidegate run --level untrusted -- npm install",
                "run a command, and all that it starts, at the lowest level",
            ),
            (
                "tidegate run --caps count.caps -- wc -l /srv/in/today",
                "run a command with nothing but what a capability file lists",
            ),
            (
                "tidegate run --profile nscd -- nscd -d",
                "run a command under a profile of the policy in force",
            ),
        ],
        files: &["/run/tidegate/level/NAME", "/run/tidegate/tidegate.sock"],
        see: &[
            "tidegate-why(1)",
            "tidegate-sessions(1)",
            "tidegate-revoke(1)",
            "tidegate.caps(5)",
            "tidegate-capability(7)",
        ],
    },
    Page {
        command: "revoke",
        examples: &[
            (
                "tidegate revoke --capability agent.caps:10",
                "take back what a line of a file gives, from all that have it",
            ),
            (
                "tidegate revoke --object file:/srv/data",
                "take back whatever any file gives of an object",
            ),
            (
                "tidegate revoke --caps-session 3",
                "take back all that a session has",
            ),
        ],
        files: &["/run/tidegate/admin.sock"],
        see: &[
            "tidegate-sessions(1)",
            "tidegate-run(1)",
            "tidegate.caps(5)",
            "tidegate-capability(7)",
        ],
    },
    Page {
        command: "sessions",
        examples: &[(
            "tidegate sessions",
            "list the sessions that began with a capability file of yours",
        )],
        files: &["/run/tidegate/tidegate.sock"],
        see: &[
            "tidegate-revoke(1)",
            "tidegate-run(1)",
            "tidegate-capability(7)",
        ],
    },
    Page {
        command: "ps",
        examples: &[
            (
                "tidegate ps --governed",
                "list the processes that have a level, and which",
            ),
            ("tidegate ps --level untrusted", "list those at one level"),
        ],
        files: &["/sys/fs/bpf/tidegate"],
        see: &["tidegate-ls(1)", "tidegate-why(1)", "tidegate-lomac(7)"],
    },
    Page {
        command: "ls",
        examples: &[
            (
                "tidegate ls /home/alice",
                "print the levels of all that is in a directory, and where they come from",
            ),
            (
                "tidegate ls -d /etc/passwd",
                "print that of a file or directory itself",
            ),
        ],
        files: &["/sys/fs/bpf/tidegate"],
        see: &[
            "tidegate-promote(1)",
            "tidegate-check(1)",
            "tidegate.plm(5)",
        ],
    },
    Page {
        command: "promote",
        examples: &[(
            "tidegate promote --level user /home/alice/Downloads/tool",
            "make a downloaded file the user's, as root at the top level",
        )],
        files: &[paths::GIVEN, "/run/tidegate/admin.sock"],
        see: &["tidegate-ls(1)", "tidegate-lomac(7)"],
    },
    Page {
        command: "log",
        examples: &[
            (
                "tidegate log --denied --since 1h",
                "print the refusals of the last hour",
            ),
            ("tidegate log --follow", "print records as they are written"),
            (
                "tidegate log --comm nginx -n 20",
                "print the last 20 records of a program",
            ),
        ],
        files: &[paths::LOG],
        see: &["tidegate-why(1)", "tidegate-learn(1)", "tidegate-audit(5)"],
    },
    Page {
        command: "top",
        examples: &[(
            "tidegate top",
            "show falls and refusals as they come; q ends it",
        )],
        files: &[paths::LOG, "/sys/fs/bpf/tidegate"],
        see: &["tidegate-log(1)", "tidegate-ps(1)"],
    },
    Page {
        command: "why",
        examples: &[
            (
                "tidegate why",
                "explain the newest refusal, and propose the narrowest fix",
            ),
            (
                "tidegate why --fixes",
                "list all fixes, with what each gives away",
            ),
            ("tidegate why @12", "explain record 12 of the log"),
            (
                "tidegate why 4711",
                "say which level a process has, and what lowered it",
            ),
        ],
        files: &[paths::LOG, paths::BUNDLES, "/run/tidegate/tidegate.sock"],
        see: &[
            "tidegate-log(1)",
            "tidegate-learn(1)",
            "tidegate-refusals(7)",
        ],
    },
    Page {
        command: "learn",
        examples: &[
            (
                "tidegate learn -o learned.plm",
                "write a map under which nothing of what was refused is refused",
            ),
            (
                "tidegate learn --since 1d --comm nginx",
                "print statements for one program's refusals of a day",
            ),
            (
                "tidegate learn --preset server --profile /etc/apparmor.d --patch learned.patch",
                "write what profiles lack, as a patch",
            ),
        ],
        files: &[paths::LOG, paths::POLICY, paths::BUNDLES],
        see: &[
            "tidegate-why(1)",
            "tidegate-reload(1)",
            "tidegate.plm(5)",
            "tidegate-refusals(7)",
        ],
    },
    Page {
        command: "sesearch",
        examples: &[
            (
                "tidegate sesearch /etc/selinux/default -A -s httpd_t -c file -p write",
                "list the files that a domain may write",
            ),
            (
                "tidegate sesearch --bundle policy.bundle -T -s init_t",
                "list transitions of a domain, by a bundle",
            ),
        ],
        files: &[],
        see: &["tidegate-seinfo(1)", "tidegate-check(1)"],
    },
    Page {
        command: "seinfo",
        examples: &[
            (
                "tidegate seinfo /etc/selinux/default",
                "count what a policy has",
            ),
            (
                "tidegate seinfo /etc/selinux/default -x -t httpd_t",
                "print a type with its attributes",
            ),
        ],
        files: &[],
        see: &["tidegate-sesearch(1)", "tidegate-getsebool(1)"],
    },
    Page {
        command: "record",
        examples: &[
            (
                "tidegate record -o build.rec.zst -- make",
                "record what a command and all that it starts do",
            ),
            (
                "tidegate record -o day.rec.zst --for 8h",
                "record what the whole machine does",
            ),
        ],
        files: &[],
        see: &["tidegate-replay(1)"],
    },
    Page {
        command: "replay",
        examples: &[
            (
                "tidegate replay build.rec.zst --preset workstation",
                "say what a preset would have refused of it",
            ),
            (
                "tidegate replay day.rec.zst --policy new.plm --against old.plm",
                "say what a changed map would refuse besides",
            ),
        ],
        files: &[],
        see: &["tidegate-record(1)", "tidegate-learn(1)", "tidegate.plm(5)"],
    },
    Page {
        command: "bench",
        examples: &[(
            "tidegate bench",
            "compare this machine with and without enforcement (package tidegate-lab)",
        )],
        files: &[],
        see: &["tidegate-lab-bench(1)"],
    },
    Page {
        command: "lab",
        examples: &[(
            "tidegate lab run",
            "measure in virtual machines (package tidegate-lab)",
        )],
        files: &[],
        see: &["tidegate-lab(1)", "tidegate-lab-run(1)"],
    },
    Page {
        command: "completions",
        examples: &[(
            "tidegate completions bash",
            "print what bash completes by; packages install it",
        )],
        files: &[],
        see: &["tidegate(1)"],
    },
    Page {
        command: "man",
        examples: &[(
            "tidegate man target/man",
            "write these pages; packages install them",
        )],
        files: &[],
        see: &["tidegate(1)"],
    },
];
