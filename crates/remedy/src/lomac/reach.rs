//! Fixes of what is reached rather than changed: sockets, networks, secrets and devices.

use tidegate_bundle::Attrs;

use super::draft::{Draft, Trust};
use super::object::{FILE, Ground, shown};
use super::statement::{ANY, Statement, kept};

impl Ground<'_> {
    pub(super) fn socket(&self, path: &str) -> Vec<Draft> {
        let path = self.general(path);
        let rule = self.rule(&path);
        let (own, shown) = (self.own(), shown(&path));
        let gives = format!(
            "the server at {shown} hears its lower clients: it falls to their level, unless its program is `nodemote`, and then its work for them is trusted"
        );
        let stars = path.matches(ANY).count() as u32;
        let open = kept(self.policy, rule, rule.level) | Attrs::LOWWRITE;
        let all = Draft::new(
            vec![Statement::path(self.name(rule.level), &path, open)],
            FILE + 4 * stars + u32::from(self.refusal.level > 0),
            format!("any level connects to {shown}"),
            gives.clone(),
        );
        if self.refusal.level == 0 {
            return vec![all];
        }
        let attrs = kept(self.policy, rule, self.refusal.level);
        let from_here = Draft::new(
            vec![Statement::path(own, &path, attrs)],
            FILE + 4 * stars,
            format!("{own} and the levels above it connect to {shown}"),
            gives,
        );
        vec![from_here, all]
    }

    pub(super) fn lower_network(&self, address: std::net::IpAddr) -> Draft {
        let own = self.own();
        let shown = address.to_canonical();
        Draft::new(
            vec![Statement::network(own, address)],
            FILE,
            format!("{own} sends to {shown}"),
            format!(
                "data from {shown} is then observed at {own}: a higher process that hears it falls"
            ),
        )
    }

    /// A secret or a device is no secret any more.
    pub(super) fn open(&self, path: &str) -> Vec<Draft> {
        let path = self.general(path);
        let rule = self.rule(&path);
        let level = self.name(rule.level);
        let shown = shown(&path);
        let attrs = kept(self.policy, rule, rule.level) - Attrs::LOWNOOPEN;
        let gives = format!(
            "a lower process, also one that has heard the network, may read {shown} and pass it on"
        );
        let stars = path.matches(ANY).count() as u32;
        let mut drafts = vec![
            Draft::new(
                vec![Statement::path(level, &path, attrs)],
                FILE + 4 * stars,
                format!("any level opens {shown} for reading"),
                gives.clone(),
            ),
            Draft::new(
                vec![Statement::path(level, &path, attrs | Attrs::LOWWRITE)],
                FILE + 4 * stars + 1,
                format!("any level reads and writes {shown}"),
                format!("{gives}; and data that anybody writes there is believed as {level}"),
            ),
        ];
        if path.starts_with("/dev/") {
            drafts.push(Draft::new(
                vec![Statement::path("neutral", &path, Attrs::empty())],
                FILE + 4 * stars + 2,
                format!("any level uses the device {shown}"),
                format!(
                    "data that passes through {shown} is not followed: it neither demotes nor is refused"
                ),
            ));
        }
        drafts
            .into_iter()
            .map(|d| d.trusting(Trust::Secret))
            .collect()
    }
}
