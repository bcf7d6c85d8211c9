//! Policies to hold deciders against: CIL with every kind of statement that bears on a decision, at random.
//!
//! Kinds, classes and the MLS part are the same each time. What they say of each other is not.

use std::collections::HashSet;
use std::fmt::Write as _;

use fastrand::Rng;

const TYPES: usize = 40;
const ATTRIBUTES: usize = 12;
const ROLES: usize = 6;
const USERS: usize = 4;
const BOOLEANS: usize = 8;
/// The type `type1` is bounded by `type0`.
const PARENT: usize = 0;
const CHILD: usize = 1;
/// Classes with permissions that can be allowed.
const CLASSES: [(&str, &[&str]); 6] = [
    (
        "process",
        &["fork", "transition", "dyntransition", "sigchld", "ptrace"],
    ),
    (
        "file",
        &[
            "read",
            "write",
            "getattr",
            "ioctl",
            "open",
            "execute",
            "entrypoint",
        ],
    ),
    (
        "dir",
        &[
            "read", "write", "getattr", "ioctl", "open", "search", "add_name",
        ],
    ),
    (
        "tcp_socket",
        &[
            "read",
            "write",
            "getattr",
            "ioctl",
            "open",
            "name_bind",
            "node_bind",
        ],
    ),
    ("fifo_file", &["read", "write", "getattr", "ioctl", "open"]),
    ("db_table", &["select", "insert", "drop"]),
];

/// What is the same in all.
const BEGINNING: &str = "\
(mls true)
(handleunknown allow)
(policycap open_perms)
(policycap extended_socket_class)
(sid kernel)
(sid security)
(sid unlabeled)
(sidorder (kernel security unlabeled))
(common io (read write getattr ioctl open))
(class process (fork transition dyntransition sigchld ptrace))
(class file (execute entrypoint))
(class dir (search add_name))
(class tcp_socket (name_bind node_bind))
(class fifo_file ())
(class db_table (select insert drop seal))
(classcommon file io)
(classcommon dir io)
(classcommon tcp_socket io)
(classcommon fifo_file io)
(classorder (process file dir tcp_socket fifo_file db_table))
(classpermission looks)
(classpermissionset looks (file (read getattr open)))
(classmap io_map (look change))
(classmapping io_map look (file (read open)))
(classmapping io_map look (dir (read search)))
(classmapping io_map change (file (write)))
(sensitivity s0)
(sensitivity s1)
(sensitivity s2)
(sensitivityorder (s0 s1 s2))
(sensitivityalias lowest)
(sensitivityaliasactual lowest s0)
(category c0) (category c1) (category c2) (category c3) (category c4) (category c5) (category c6) (category c7)
(categoryorder (c0 c1 c2 c3 c4 c5 c6 c7))
(categoryalias first)
(categoryaliasactual first c0)
(categoryset most (range c0 c6))
(sensitivitycategory s0 (most))
(sensitivitycategory s0 (c7))
(sensitivitycategory s1 (range c0 c7))
(sensitivitycategory s2 (range c2 c7))
(level bottom (s0))
(level top (s2 (range c2 c7)))
(levelrange all (bottom top))
(defaultuser db_table target)
(defaultrole dir source)
(defaulttype fifo_file source)
(defaultrange file target low)
(defaultrange dir source high)
(defaultrange fifo_file target low-high)
(defaultrange db_table glblub)
";

/// Writes a policy, always the same for a seed.
pub fn generate(seed: u64) -> String {
    let mut writer = Writer {
        random: Rng::with_seed(seed),
        text: BEGINNING.to_owned(),
        transitions: HashSet::new(),
    };
    writer.symbols();
    writer.rules();
    writer.conditionals();
    writer.constraints();
    writer.transitions();
    writer.blocks();
    writer.labels();
    writer.text
}

struct Writer {
    random: Rng,
    text: String,
    /// Which transitions, members and changes there are: two that differ would not compile.
    transitions: HashSet<(&'static str, usize, usize, usize)>,
}

macro_rules! say {
    ($writer:expr, $($what:tt)*) => {
        writeln!($writer.text, $($what)*).expect("a string takes all")
    };
}

impl Writer {
    fn below(&mut self, count: usize) -> usize {
        self.random.usize(..count)
    }

    fn symbols(&mut self) {
        for at in 0..TYPES {
            say!(self, "(type type{at})");
        }
        say!(self, "(typealias also)\n(typealiasactual also type5)");
        say!(
            self,
            "(typebounds type{PARENT} type{CHILD})\n(typepermissive type7)"
        );
        for at in 0..ATTRIBUTES {
            let mut members: Vec<_> = (0..=self.below(8)).map(|_| self.below(TYPES)).collect();
            if members.contains(&CHILD) {
                members.push(PARENT);
            }
            members.sort_unstable();
            members.dedup();
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("type{member}"))
                .collect();
            say!(
                self,
                "(typeattribute a{at})\n(typeattributeset a{at} ({}))",
                members.join(" ")
            );
        }
        say!(
            self,
            "(typeattribute both)\n(typeattributeset both (and (and a0 (not a1)) (not type{CHILD})))"
        );
        say!(
            self,
            "(typeattribute either)\n(typeattributeset either (and (xor a2 a3) (not type{CHILD})))"
        );
        say!(
            self,
            "(typeattribute every)\n(typeattributeset every (all))"
        );
        say!(self, "(role object_r)\n(roletype object_r every)");
        for at in 0..ROLES {
            say!(self, "(role role{at})");
            for _ in 0..self.below(4) + 1 {
                let attribute = self.below(ATTRIBUTES);
                say!(self, "(roletype role{at} a{attribute})");
            }
            let kind = self.below(TYPES);
            say!(self, "(roletype role{at} type{kind})");
        }
        say!(
            self,
            "(roleattribute some)\n(roleattributeset some (role0 role1 role2))\n(roletype some type3)"
        );
        for at in 0..USERS {
            let role = self.below(ROLES);
            let range = [
                "all",
                "((s0) (s0 (c1 c3)))",
                "((s1 (c2)) (s2 (range c2 c5)))",
            ];
            let range = range[self.below(3)];
            let level = if range.starts_with("((s1") {
                "(s1 (c2))"
            } else {
                "(s0)"
            };
            say!(
                self,
                "(user user{at})\n(userrole user{at} object_r)\n(userrole user{at} role{role})\n(userrole user{at} role0)"
            );
            say!(
                self,
                "(userlevel user{at} {level})\n(userrange user{at} {range})"
            );
        }
        say!(
            self,
            "(user system)\n(userrole system object_r)\n(userrole system some)"
        );
        say!(self, "(userlevel system bottom)\n(userrange system all)");
        for at in 0..BOOLEANS {
            let value = self.random.bool();
            say!(self, "(boolean b{at} {value})");
        }
        say!(self, "(tunable built true)");
    }

    /// The source or target of a rule: a type, or now and then an attribute.
    fn name(&mut self) -> String {
        match self.below(5) {
            0..2 => format!("a{}", self.below(ATTRIBUTES)),
            2 => ["both", "either", "every"][self.below(3)].to_owned(),
            _ => format!("type{}", self.below(TYPES)),
        }
    }

    fn permissions(&mut self) -> String {
        let (class, permissions) = CLASSES[self.below(CLASSES.len())];
        let mut chosen: Vec<_> = permissions
            .iter()
            .filter(|_| self.random.bool())
            .copied()
            .collect();
        if chosen.is_empty() {
            chosen.push(permissions[0]);
        }
        format!("({class} ({}))", chosen.join(" "))
    }

    /// A rule on access, and, where it is one of the bounded type, the same of what bounds it.
    fn rule(&mut self, kind: &str) -> String {
        let (source, target, permissions) = (self.name(), self.name(), self.permissions());
        let target = if self.below(8) == 0 {
            "self".to_owned()
        } else {
            target
        };
        let child = format!("type{CHILD}");
        let mut text = format!("({kind} {source} {target} {permissions})");
        if source == child || target == child {
            let up = |name: &str| match name == child {
                true => format!("type{PARENT}"),
                false => name.to_owned(),
            };
            let _ = write!(
                text,
                "\n({kind} {} {} {permissions})",
                up(&source),
                up(&target)
            );
        }
        text
    }

    fn rules(&mut self) {
        for _ in 0..400 {
            let kind = ["allow", "allow", "allow", "auditallow", "dontaudit"][self.below(5)];
            let rule = self.rule(kind);
            say!(self, "{rule}");
        }
        for _ in 0..20 {
            let (source, target) = (self.name(), self.below(TYPES - 2) + 2);
            let kind = ["allowx", "auditallowx", "dontauditx"][self.below(3)];
            let low = self.random.u16(..0xff00);
            let high = low + self.random.u16(..0x400).min(0xffff - low);
            say!(
                self,
                "({kind} {source} type{target} (ioctl file (range {low:#x} {high:#x})))"
            );
        }
        for at in 0..8 {
            say!(
                self,
                "(allow type{} a{at} looks)\n(allow type{} a{at} (io_map (look)))",
                at + 2,
                at + 3
            );
        }
        say!(
            self,
            "(tunableif built (true (allow type8 type9 (file (execute)))))"
        );
        say!(self, "(neverallow type39 type38 (db_table (seal)))");
    }

    fn expression(&mut self, depth: usize) -> String {
        let boolean = self.below(BOOLEANS);
        if depth == 0 || self.below(3) == 0 {
            return format!("b{boolean}");
        }
        let operator = ["and", "or", "xor", "eq", "neq", "not"][self.below(6)];
        let first = self.expression(depth - 1);
        match operator {
            "not" if first.starts_with('(') => format!("(not {first})"),
            "not" => format!("(not {first})"),
            _ => format!("({operator} {first} {})", self.expression(depth - 1)),
        }
    }

    fn conditionals(&mut self) {
        for _ in 0..30 {
            let expression = self.expression(3);
            say!(self, "(booleanif {expression}");
            for list in ["true", "false"] {
                say!(self, "({list}");
                for _ in 0..self.below(6) + 1 {
                    let kind = ["allow", "allow", "auditallow", "dontaudit"][self.below(4)];
                    let rule = self.rule(kind);
                    say!(self, "{rule}");
                }
                let rule = self.type_rule();
                say!(self, "{rule})");
            }
            say!(self, ")");
        }
    }

    /// A transition, member or change that no other is in the way of; nothing if this one is.
    fn type_rule(&mut self) -> String {
        let kind = ["typetransition", "typemember", "typechange"][self.below(3)];
        let [source, target, result] = [self.below(TYPES), self.below(TYPES), self.below(TYPES)];
        let class = self.below(CLASSES.len());
        match self.transitions.insert((kind, source, target, class)) {
            true => format!(
                "({kind} type{source} type{target} {} type{result})",
                CLASSES[class].0
            ),
            false => String::new(),
        }
    }

    fn transitions(&mut self) {
        for _ in 0..200 {
            let rule = self.type_rule();
            say!(self, "{rule}");
        }
        for at in 0..40 {
            let [source, target, result] =
                [self.below(TYPES), self.below(TYPES), self.below(TYPES)];
            let class = CLASSES[self.below(CLASSES.len())].0;
            say!(
                self,
                "(typetransition type{source} type{target} {class} \"name{at}\" type{result})"
            );
            say!(
                self,
                "(typetransition a{} type{target} {class} \"other{at}\" type{result})",
                at % ATTRIBUTES
            );
        }
        // one name that becomes another type for another source
        for at in 0..10 {
            let [target, one, other] = [self.below(TYPES), self.below(TYPES), self.below(TYPES)];
            let (source, next) = (2 * at, 2 * at + 1);
            say!(
                self,
                "(typetransition type{source} type{target} dir \"shared{at}\" type{one})"
            );
            say!(
                self,
                "(typetransition type{next} type{target} dir \"shared{at}\" type{other})"
            );
        }
        for at in 0..ROLES {
            let [one, other, kind] = [self.below(ROLES), self.below(ROLES), self.below(TYPES)];
            let class = CLASSES[self.below(CLASSES.len())].0;
            say!(
                self,
                "(roleallow role{at} role{one})\n(roletransition role{at} type{kind} {class} role{other})"
            );
        }
        let mut seen = HashSet::new();
        for _ in 0..60 {
            let [source, target] = [self.below(TYPES), self.below(TYPES)];
            let class = self.below(CLASSES.len());
            let range = [
                "((s0) (s1 (c1)))",
                "((s1 (c2)) (s2 (c2 c3)))",
                "all",
                "(bottom bottom)",
            ];
            let range = range[self.below(4)];
            if seen.insert((source, target, class)) {
                say!(
                    self,
                    "(rangetransition type{source} type{target} {} {range})",
                    CLASSES[class].0
                );
            }
        }
    }

    /// What a constraint says: of two contexts, or of three.
    fn constraint(&mut self, depth: usize, sides: usize, is_mls: bool) -> String {
        if depth > 0 && self.below(3) > 0 {
            let first = self.constraint(depth - 1, sides, is_mls);
            let operator = ["and", "or", "not"][self.below(3)];
            return match operator {
                "not" => format!("(not {first})"),
                _ => {
                    let second = self.constraint(depth - 1, sides, is_mls);
                    format!("({operator} {first} {second})")
                }
            };
        }
        let equal = ["eq", "neq"][self.below(2)];
        let side = self.below(sides) + 1;
        match self.below(if is_mls { 9 } else { 6 }) {
            0 => format!("({equal} u1 u2)"),
            1 => format!(
                "({} r1 r2)",
                ["eq", "neq", "dom", "domby", "incomp"][self.below(5)]
            ),
            2 => format!("({equal} t1 t2)"),
            3 => format!(
                "({equal} t{side} (a{} type{}))",
                self.below(ATTRIBUTES),
                self.below(TYPES)
            ),
            4 => format!("({equal} r{side} role{})", self.below(ROLES)),
            5 => format!("({equal} u{side} user{})", self.below(USERS)),
            _ => {
                let operator = ["eq", "neq", "dom", "domby", "incomp"][self.below(5)];
                let pair = ["l1 l2", "l1 h2", "h1 l2", "h1 h2", "l1 h1", "l2 h2"][self.below(6)];
                format!("({operator} {pair})")
            }
        }
    }

    fn constraints(&mut self) {
        for _ in 0..12 {
            let (permissions, expression) = (self.permissions(), self.constraint(3, 2, false));
            say!(self, "(constrain {permissions} {expression})");
            let (permissions, expression) = (self.permissions(), self.constraint(3, 2, true));
            say!(self, "(mlsconstrain {permissions} {expression})");
        }
        for class in ["file", "dir", "tcp_socket"] {
            let expression = self.constraint(2, 3, false);
            say!(self, "(validatetrans {class} {expression})");
            let expression = self.constraint(3, 3, true);
            say!(self, "(mlsvalidatetrans {class} {expression})");
        }
    }

    fn blocks(&mut self) {
        let rule = self.rule("allow");
        say!(
            self,
            "(block base (blockabstract base) (type own) (allow own self (file (read write))) {rule})"
        );
        for name in ["one", "two"] {
            say!(
                self,
                "(block {name} (blockinherit base) (roletype object_r own) (allow type{} own (file (read))))",
                self.random.usize(2..TYPES)
            );
        }
        say!(self, "(in one (allow own type4 (dir (search))))");
        say!(
            self,
            "(macro talk ((type who) (type whom)) (allow who whom (fifo_file (read write))))"
        );
        for _ in 0..5 {
            let [who, whom] = [self.below(TYPES - 2) + 2, self.below(TYPES - 2) + 2];
            say!(self, "(call talk (type{who} type{whom}))");
        }
        say!(self, "(optional there (allow type10 type11 (file (open))))");
        say!(
            self,
            "(optional absent (allow type10 nowhere (file (write))))"
        );
    }

    fn labels(&mut self) {
        let context = "(system object_r type2 (bottom bottom))";
        for sid in ["kernel", "security", "unlabeled"] {
            say!(self, "(sidcontext {sid} {context})");
        }
        say!(
            self,
            "(fsuse xattr ext4 {context})\n(fsuse task pipefs {context})\n(fsuse trans tmpfs {context})"
        );
        say!(
            self,
            "(genfscon proc \"/\" {context})\n(genfscon proc \"/sys/kernel\" {context})"
        );
        say!(self, "(genfscon sysfs \"/\" {context})");
        say!(
            self,
            "(portcon tcp 80 {context})\n(portcon udp (1024 2048) {context})"
        );
        say!(
            self,
            "(nodecon (10.0.0.0) (255.0.0.0) {context})\n(nodecon (fe80::) (ffff::) {context})"
        );
        say!(
            self,
            "(netifcon lo {context} {context})\n(ibpkeycon fe80:: 5 {context})\n(ibendportcon mlx5_0 1 {context})"
        );
        say!(
            self,
            "(filecon \"/etc(/.*)?\" any {context})\n(filecon \"/bin/x\" file ())"
        );
    }
}
