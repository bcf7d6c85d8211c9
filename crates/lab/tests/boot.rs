//! Boots real machines. Ignored by default, because the first run builds the
//! artefacts (see `tidegate-lab setup`): `scripts/xtask.sh test lab`.

use std::fs;
use std::time::Duration;

use tidegate_lab::artefact::{Kernel, Lab};
use tidegate_lab::vm::{Capture, End, Machine, Outcome};

fn run(machine: &Machine, script: &str) -> (Outcome, Capture) {
    let mut output = Capture::default();
    let lab = Lab::open().unwrap();
    let outcome = machine
        .run(&lab, &["sh", "-c", script], &mut output)
        .unwrap();
    (outcome, output)
}

/// What Tidegate asks of a kernel, and what its tests ask of the image.
fn is_fit(kernel: Kernel) {
    let series = kernel.to_string();
    let (outcome, output) = run(
        &Machine::new(kernel),
        "uname -r; cat /sys/kernel/security/lsm; echo; test -s /sys/kernel/btf/vmlinux &&
         su - alice -c id && su - alice -c 'cat ~/.ssh/id_ed25519 ~/.bashrc' > /dev/null &&
         for m in dummy veth overlay loop binfmt_misc vfat tun; do modprobe $m || exit; done &&
         mountpoint -q /sys/fs/bpf &&
         ip -o addr show lo; echo oops >&2; exit 42",
    );
    assert_eq!(outcome.status(), Some(42), "{}", outcome.explain());
    assert!(outcome.complaints.is_empty(), "{}", outcome.explain());
    let text = output.out_text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(&series), "{text}");
    assert!(lines[1].split(',').any(|module| module == "bpf"), "{text}");
    assert!(lines[2].starts_with("uid=1000(alice)"), "{text}");
    assert!(text.contains("127.0.0.1/8"), "{text}");
    assert!(output.err_text().ends_with("oops\n"));
}

#[test]
#[ignore = "boots a machine"]
fn linux_6_12_is_fit() {
    is_fit(Kernel::V6_12);
}

#[test]
#[ignore = "boots a machine"]
fn linux_7_2_is_fit() {
    is_fit(Kernel::V7_2);
}

#[test]
#[ignore = "boots a machine"]
fn the_payload_is_a_copy_owned_by_root() {
    let dir = std::env::temp_dir().join(format!("tidegate-lab-payload-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("note"), "from the host\n").unwrap();
    let machine = Machine::new(Kernel::V7_2).payload(&dir);
    let script = "stat -c '%u %n' *; cat note; echo changed > note";
    for _ in 0..2 {
        let (outcome, output) = run(&machine, script);
        assert!(outcome.success(), "{}", outcome.explain());
        assert_eq!(output.out_text(), "0 note\nfrom the host\n");
    }
    assert_eq!(
        fs::read_to_string(dir.join("note")).unwrap(),
        "from the host\n"
    );
    fs::remove_dir_all(dir).unwrap();
}

#[test]
#[ignore = "boots a machine"]
fn a_kernel_that_complains_fails_the_run() {
    let machine = Machine::new(Kernel::V6_12);
    let (outcome, _) = run(&machine, "echo '<4>WARNING: not a real one' > /dev/kmsg");
    assert_eq!(outcome.status(), Some(0));
    assert!(!outcome.success());

    let (outcome, _) = run(&machine, "echo c > /proc/sysrq-trigger");
    assert_eq!(outcome.end, End::Died);
    assert!(
        outcome.explain().contains("sysrq triggered crash"),
        "{}",
        outcome.explain()
    );
}

#[test]
#[ignore = "boots a machine"]
fn the_timeout_holds() {
    let machine = Machine::new(Kernel::V7_2).timeout(Duration::from_secs(8));
    let (outcome, _) = run(&machine, "sleep 1000");
    assert_eq!(outcome.end, End::TimedOut);
    assert!(outcome.total < Duration::from_secs(20));
}

#[test]
#[ignore = "boots a machine"]
fn counted_instructions_are_the_same_every_time() {
    let machine = Machine::new(Kernel::V7_2).icount(true);
    let clock = "for i in 1 2 3; do /bin/true; done; cat /proc/timer_list | sed -n '/^now at/p'";
    let first = run(&machine, clock);
    let second = run(&machine, clock);
    assert!(first.0.success(), "{}", first.0.explain());
    assert!(first.1.out_text().starts_with("now at"));
    assert_eq!(first.1.out_text(), second.1.out_text());
}
