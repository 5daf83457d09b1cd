//! Paths below the root of another system, whose links must not lead out of it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// The root of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The root at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path as it is called inside.
    pub fn inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.0) {
            Ok(relative) => Path::new("/").join(relative),
            Err(_) => path.to_owned(),
        }
    }

    /// The file or directory that `path`, as it is called inside, leads to, links resolved as
    /// the system inside would. It need not be there; a circle of links is an error.
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        if self.0 == Path::new("/") {
            return Ok(Path::new("/").join(path));
        }
        let mut todo: VecDeque<OsString> = parts(path);
        let mut depth = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop_front() {
            if part == ".." {
                depth.pop();
                continue;
            }
            depth.push(part);
            let here = self.0.join(depth.iter().collect::<PathBuf>());
            let Ok(target) = here.read_link() else { continue };
            links += 1;
            if links > MOST_LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            depth.pop();
            if target.is_absolute() {
                depth.clear();
            }
            for part in parts(&target).into_iter().rev() {
                todo.push_front(part);
            }
        }
        Ok(self.0.join(depth.iter().collect::<PathBuf>()))
    }
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let kept = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_never_lead_out_of_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path());
        fs::create_dir_all(directory.path().join("usr/lib/modules/a/extra")).unwrap();
        fs::create_dir_all(directory.path().join("usr/lib/modules/b/weak-updates")).unwrap();
        symlink("usr/lib", directory.path().join("lib")).unwrap();
        symlink(
            "/lib/modules/a/extra/x.ko",
            directory.path().join("usr/lib/modules/b/weak-updates/x.ko"),
        )
        .unwrap();
        symlink("../../../../../etc/passwd", directory.path().join("usr/up")).unwrap();
        let resolved = |path: &str| root.inside(&root.resolve(Path::new(path)).unwrap());
        assert_eq!(
            resolved("/lib/modules/b/weak-updates/x.ko"),
            Path::new("/usr/lib/modules/a/extra/x.ko")
        );
        assert_eq!(resolved("usr/up"), Path::new("/etc/passwd"));
        assert_eq!(resolved("/none/../there"), Path::new("/there"));
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        symlink("b", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        let error = Root::new(directory.path()).resolve(Path::new("/a/x")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
    }
}
