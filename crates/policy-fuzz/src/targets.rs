//! The fuzz targets. `cargo test` runs each for two seconds on random input; the
//! README has the commands for longer and coverage-guided runs.

use std::time::Duration;

use bolero::check;
use tidegate_policy::Policy;
use tidegate_policy::profile::pack::example;

use crate::profile::{changed_profiles, profiles};
use crate::recording::{bytes_as_recording, lines_as_recording, replay};
use crate::{changed, changed_far, compile, good_bundle, good_bundle_with_profiles, load, words};

const SMOKE: Duration = Duration::from_secs(2);

#[test]
fn map_of_bytes() {
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        compile(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn map_of_words() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| compile(&words(bytes)));
}

#[test]
fn bundle_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| load(bytes));
}

#[test]
fn bundle_of_a_changed_body() {
    let good = good_bundle();
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| load(&changed(&good, bytes)));
}

#[test]
fn bundle_of_changed_profiles() {
    let good = good_bundle_with_profiles();
    Policy::from_bundle(&good).expect("it is one");
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        load(&changed_far(&good, bytes));
    });
}

#[test]
fn recording_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| replay(&bytes_as_recording(bytes)));
}

#[test]
fn recording_of_lines() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| replay(&lines_as_recording(bytes)));
}

#[test]
fn profiles_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| profiles(bytes));
}

#[test]
fn profiles_with_changes() {
    let good = example().0;
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| profiles(&changed_profiles(&good, bytes)));
}
