// What `kernel/te/classmap` says, for the build scripts of this crate and of the monitor, which include this file.

/// A class and its permissions, in their order.
pub struct Class {
    /// Its name, as policies have it.
    pub name: String,
    /// The names of its permissions, by their bits.
    pub permissions: Vec<String>,
}

/// Reads the list.
pub fn classmap(text: &str) -> Vec<Class> {
    let mut sets: Vec<(String, Vec<String>)> = Vec::new();
    let mut classes = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (name, words) = line.split_once(": ").expect("`NAME: WORD…`");
        let mut permissions = Vec::new();
        for word in words.split_whitespace() {
            match word.strip_prefix('@') {
                Some(set) => {
                    let found = sets.iter().find(|(name, _)| name == set);
                    permissions.extend(found.expect("a set that is there").1.iter().cloned());
                }
                None => permissions.push(word.to_owned()),
            }
        }
        match name.strip_prefix("set ") {
            Some(set) => sets.push((set.to_owned(), permissions)),
            None => {
                assert!(permissions.len() <= 32, "{name} has more than 32 permissions");
                classes.push(Class {
                    name: name.to_owned(),
                    permissions,
                });
            }
        }
    }
    classes
}

/// The constants for C, by the names that SELinux gives them.
pub fn header(classes: &[Class]) -> String {
    let mut out = String::from("/* Made of kernel/te/classmap. */\n");
    for (index, class) in classes.iter().enumerate() {
        let name = class.name.to_uppercase();
        out += &format!("#define SECCLASS_{name} {}\n", index + 1);
        for (bit, permission) in class.permissions.iter().enumerate() {
            out += &format!("#define {name}__{} (1u << {bit})\n", permission.to_uppercase());
        }
    }
    out += &format!("#define SECCLASS_COUNT {}\n", classes.len() + 1);
    out
}
