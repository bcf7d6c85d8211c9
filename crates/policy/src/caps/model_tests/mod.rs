//! What active capabilities are good for: scenes, and random sequences held against what every link of a chain allowed.

mod random;
mod scenes;
mod service;

use tidegate_bundle::caps::permission::*;
use tidegate_bundle::caps::{Class, Object};

use super::decide::Layer;
use super::model::*;
use super::*;

const FILES: [&str; 2] = [
    r#"
subject host {
    file /data/** read write lock
    file /data/log append
    file /data/once read expires 10s
    file /data/few read write uses 2
    file /data/** append ioctl expires 5s
    program /bin/** execute
    program /bin/tool execute as tool
    library /lib/** load
    library /lib/plugin load as plugin
    connect unix /run/notes
    connect unix /run/plain
    service notes pub:* read write
    service notes own:* read expires 10s
    service notes few:* read uses 2
    control file read write append
}
subject tool {
    file /data/** read
    program /bin/** execute
    library /lib/** load
    connect unix /run/notes
    service notes pub:** read
}
subject plugin {
    file /data/plugin/** read write
    library /lib/** load
    program /bin/** execute
}
service notes on /run/notes {
    permission read write
    operation 1 open bind operand 1 by operand 2 { 0 read  1 write  2 read write }
    operation 2 get  active operand 1 read
    operation 3 put  active operand 1 write
    operation 4 ping free
    operation 5 copy active operand 1 read operand 2 write
}
"#,
    r#"
subject box {
    file /data/** read write lock ioctl append
    file /data/p* read
    program /bin/** execute
    library /lib/** load
    connect unix /run/*
}
subject shut {
}
"#,
];

const HOST: Layer = Layer {
    files: 0,
    subject: 0,
};
const TOOL: Layer = Layer {
    files: 0,
    subject: 1,
};
const PLUGIN: Layer = Layer {
    files: 0,
    subject: 2,
};
const BOX: Layer = Layer {
    files: 1,
    subject: 0,
};
const SHUT: Layer = Layer {
    files: 1,
    subject: 1,
};

/// Few objects, and each given with limits somewhere, so that random sequences meet what ends.
const RANDOM: [&str; 2] = [
    r#"
subject host {
    file /a read write expires 6s
    file /b read write lock
    file /b append expires 9s
    file /c read
    program /bin/** execute
    program /bin/tool execute as tool
    library /lib/** load
    library /lib/plugin load as plugin
}
subject tool {
    file /a read
    file /b read write expires 12s
    program /bin/** execute
    library /lib/** load
}
subject plugin {
    file /b write lock
    file /a read write
    program /bin/** execute
    library /lib/** load
}
"#,
    r#"
subject box {
    file /* read write lock ioctl append
    program /bin/** execute
    library /lib/** load
}
subject shut {
}
"#,
];

fn files() -> Vec<Capabilities> {
    compiled(FILES)
}

fn compiled(files: [&str; 2]) -> Vec<Capabilities> {
    let compile = |text: &str| match compile_str("model.caps", text) {
        Ok(compiled) => compiled.capabilities,
        Err(errors) => panic!("{errors:?}"),
    };
    files.map(compile).into()
}

fn file(path: &str) -> Object {
    Object::Path(Class::File, path.into())
}

fn socket(path: &str) -> Object {
    Object::Unix(path.into())
}

fn missing(result: Result<impl Sized, Refusal>) -> (Layer, u32) {
    match result {
        Err(Refusal::Missing(missing)) => (missing.layer, missing.rights),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is allowed"),
    }
}
