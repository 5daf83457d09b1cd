//! What a property is: one row of a table that getters, introspection and publication share.

use zbus::Variant;

/// How a change of a property is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emission {
    /// It never changes while its object exists.
    Const,
    /// It changes without a signal and is read when it is asked for.
    Silent,
    /// Each change is announced with the new value.
    Change,
}

impl Emission {
    /// The value of the `EmitsChangedSignal` annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Const => "const",
            Self::Silent => "false",
            Self::Change => "true",
        }
    }
}

/// A readable property of the objects that show a `T`. None is writable.
#[derive(Debug)]
pub struct Property<T: 'static> {
    /// Its name on the bus.
    pub name: &'static str,
    /// Its D-Bus type.
    pub signature: &'static str,
    /// How a change is told.
    pub emission: Emission,
    /// Its value in a snapshot; always of type `signature`.
    pub get: fn(&T) -> Variant<'static>,
}

/// Values by property name, in the order of the table.
pub type Values = Vec<(&'static str, Variant<'static>)>;

/// The announced properties that differ, with their values in `new`.
pub fn changes<T>(table: &[Property<T>], old: &T, new: &T) -> Values {
    differing(table, Emission::Change, old, new).collect()
}

/// Whether everything that identifies the object is equal, so that it is still the same one.
pub fn is_same_object<T>(table: &[Property<T>], old: &T, new: &T) -> bool {
    differing(table, Emission::Const, old, new).next().is_none()
}

fn differing<'a, T>(
    table: &'a [Property<T>],
    emission: Emission,
    old: &'a T,
    new: &'a T,
) -> impl Iterator<Item = (&'static str, Variant<'static>)> + 'a {
    table.iter().filter(move |property| property.emission == emission).filter_map(|property| {
        let value = (property.get)(new);
        ((property.get)(old) != value).then_some((property.name, value))
    })
}
