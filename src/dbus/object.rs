//! An object on the bus: properties from a table, methods and signals from zbus's macro.
//!
//! zbus's macro would want one function per property beside the table that publication compares
//! by; answering from the table keeps the two from ever differing.

use std::collections::HashMap;
use std::fmt::Write;

use async_trait::async_trait;
use zbus::message::{Header, Message};
use zbus::names::{InterfaceName, MemberName};
use zbus::object_server::{DispatchResult, Interface, SignalEmitter};
use zbus::{BoxDBusError, Connection, ObjectServer, OwnedVariant, Variant, fdo};

use super::property::{Emission, Property};

/// What an object shows. The [`Interface`] implementation brings its methods and signals.
pub trait Subject: Interface {
    /// What the properties are read from.
    type Snapshot: 'static;
    /// The properties.
    const PROPERTIES: &'static [Property<Self::Snapshot>];

    /// Looks at the latest snapshot without waiting; `None` once the subject is gone.
    fn look<R>(&self, view: impl FnOnce(&Self::Snapshot) -> R) -> Option<R>;
}

/// A [`Subject`] as the object server takes it.
#[derive(Debug)]
pub struct Object<S>(pub S);

impl<S: Subject> Object<S> {
    fn property(name: &str) -> Option<&'static Property<S::Snapshot>> {
        S::PROPERTIES.iter().find(|property| property.name == name)
    }

    fn read(&self, property: &Property<S::Snapshot>) -> fdo::Result<OwnedVariant> {
        let value = self.0.look(property.get).ok_or_else(gone)?;
        Ok(OwnedVariant::try_from(value)?)
    }

    fn read_all(&self) -> fdo::Result<HashMap<String, OwnedVariant>> {
        let values = self.0.look(|snapshot| {
            let value = |property: &Property<S::Snapshot>| {
                let value = OwnedVariant::try_from((property.get)(snapshot))?;
                Ok((property.name.to_owned(), value))
            };
            S::PROPERTIES.iter().map(value).collect()
        });
        values.ok_or_else(gone)?
    }
}

#[async_trait]
impl<S: Subject> Interface for Object<S> {
    fn name() -> InterfaceName<'static> {
        S::name()
    }

    async fn get(
        &self,
        name: &str,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> Option<Result<OwnedVariant, BoxDBusError>> {
        Self::property(name).map(|property| self.read(property).map_err(Into::into))
    }

    async fn get_all(
        &self,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> fdo::Result<HashMap<String, OwnedVariant>> {
        self.read_all()
    }

    fn set<'call>(
        &'call self,
        name: &'call str,
        _: &'call Variant<'_>,
        _: &'call ObjectServer,
        _: &'call Connection,
        _: Option<&'call Header<'_>>,
        _: &'call SignalEmitter<'_>,
    ) -> DispatchResult<'call> {
        if Self::property(name).is_none() {
            return DispatchResult::NotFound;
        }
        let refusal = fdo::Error::PropertyReadOnly(format!("Property '{name}' is read-only."));
        DispatchResult::Async(Box::pin(async { Err(refusal.into()) }))
    }

    async fn set_mut(
        &mut self,
        _: &str,
        _: &Variant<'_>,
        _: &ObjectServer,
        _: &Connection,
        _: Option<&Header<'_>>,
        _: &SignalEmitter<'_>,
    ) -> Option<Result<(), BoxDBusError>> {
        None
    }

    fn call<'call>(
        &'call self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        self.0.call(server, connection, message, name)
    }

    fn call_mut<'call>(
        &'call mut self,
        _: &'call ObjectServer,
        _: &'call Connection,
        _: &'call Message,
        _: MemberName<'call>,
    ) -> DispatchResult<'call> {
        DispatchResult::NotFound
    }

    fn introspect_to_writer(&self, writer: &mut dyn Write, level: usize) {
        const END: &str = "</interface>";
        let mut xml = String::new();
        self.0.introspect_to_writer(&mut xml, level);
        let xml = xml.trim_end();
        let members = xml.strip_suffix(END).unwrap_or(xml).trim_end();
        let properties: String =
            S::PROPERTIES.iter().map(|property| property_xml(property, level + 2)).collect();
        // The writer is a String of zbus's; writing to it cannot fail.
        let _ = write!(writer, "{members}\n{properties}{:level$}{END}\n", "");
    }
}

fn property_xml<T>(property: &Property<T>, level: usize) -> String {
    let Property { name, signature, emission, .. } = property;
    let head =
        format!("{:level$}<property name=\"{name}\" type=\"{signature}\" access=\"read\"", "");
    if *emission == Emission::Change {
        return format!("{head}/>\n");
    }
    format!(
        "{head}>\n{:inner$}<annotation name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\" \
         value=\"{}\"/>\n{:level$}</property>\n",
        "",
        emission.as_str(),
        "",
        inner = level + 2,
    )
}

fn gone() -> fdo::Error {
    fdo::Error::UnknownObject(
        "The object is gone; 'busctl tree org.peermemd1' shows what is there.".to_owned(),
    )
}
