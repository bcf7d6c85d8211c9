//! The fuzz targets. `cargo test` runs each for two seconds on random input; the
//! README has the commands for longer and coverage-guided runs.

use std::time::Duration;

use bolero::check;
use tidegate_bundle::Policy;
use tidegate_bundle::te::example::example as te_example;
use tidegate_policy::profile::pack::example;

use crate::caps;
use crate::contexts;
use crate::profile::{changed_profiles, profiles};
use crate::recording::{bytes_as_recording, lines_as_recording, replay};
use crate::service;
use crate::te::{context, context_words, good_policy, policy};
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

#[test]
fn te_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| policy(bytes));
}

#[test]
fn te_with_changes() {
    let good = [false, true].map(good_policy);
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        for good in &good {
            policy(&changed_profiles(good, bytes));
        }
    });
}

#[test]
fn te_context_of_words() {
    let db = te_example(34);
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        context(&db, &context_words(bytes));
        context(&db, &String::from_utf8_lossy(bytes));
    });
}

#[test]
fn file_contexts_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| contexts::compile(bytes));
}

#[test]
fn file_contexts_with_changes() {
    let good = contexts::good();
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| contexts::read(&changed_profiles(&good, bytes)));
}

#[test]
fn caps_of_bytes() {
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        caps::compile(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn caps_of_words() {
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        caps::compile(&caps::words(bytes));
    });
}

#[test]
fn caps_of_lines() {
    check!().with_test_time(SMOKE).for_each(|bytes: &[u8]| {
        assert!(caps::compile(&caps::lines(bytes)));
    });
}

#[test]
fn caps_bundle_of_a_changed_body() {
    let good = caps::good();
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| caps::read(&changed_far(&good, bytes)));
}

#[test]
fn service_message_of_bytes() {
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| service::read(bytes));
}

#[test]
fn service_message_with_changes() {
    let good = service::good();
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| service::read(&service::changed(&good, bytes)));
}

#[test]
fn service_reply_with_changes() {
    let good = service::good_reply();
    check!()
        .with_test_time(SMOKE)
        .for_each(|bytes: &[u8]| service::read(&service::changed(&good, bytes)));
}
