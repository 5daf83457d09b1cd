//! One connection to the bus: subscriptions, signals, and jobs that were asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroUsize;

use futures_util::StreamExt;
use zbus::fdo::{DBusProxy, PropertiesProxy};
use zbus::message::Type;
use zbus::names::{BusName, InterfaceName};
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedVariant};

use super::cache::{self, JobPath};
use super::proxy::ManagerProxy;
use super::stop::{self, StopJob, StopRequest};
use super::within;
use crate::model::Unit;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "org.freedesktop.systemd1.Unit";
const JOB: &str = "org.freedesktop.systemd1.Job";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Signals that may wait while a call is under way.
const QUEUE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A connection with its view of the units.
pub(super) struct Session {
    connection: Connection,
    messages: MessageStream,
    bus: DBusProxy<'static>,
    manager: ManagerProxy<'static>,
    units: BTreeMap<String, Unit>,
    paths: HashMap<String, String>,
    stops: Vec<StopJob>,
}

/// Something to deal with.
#[derive(Debug)]
pub(super) enum Event {
    /// A message came.
    Message(Message),
    /// A stop job has taken too long.
    StopOverdue,
}

impl Session {
    /// Connects and subscribes. systemd itself may not be there yet.
    pub(super) async fn open(address: &str) -> zbus::Result<Self> {
        let builder = zbus::connection::Builder::address(address).max_queued(QUEUE);
        let connection = within(builder.build()).await?;
        let messages = MessageStream::from(&connection);
        let bus = DBusProxy::new(&connection).await?;
        let manager = ManagerProxy::new(&connection).await?;
        let (units, paths, stops) = Default::default();
        let session = Self { connection, messages, bus, manager, units, paths, stops };
        let owner = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender("org.freedesktop.DBus")
            .member("NameOwnerChanged")
            .add_arg(SYSTEMD)
            .build()?;
        session.add_match(owner).await?;
        session.add_match(signal("Reloading").build()?).await?;
        within(session.manager.subscribe()).await?;
        Ok(session)
    }

    /// The view of the units that are wanted.
    pub(super) fn units(&self) -> &BTreeMap<String, Unit> {
        &self.units
    }

    /// Makes the view cover exactly these units.
    pub(super) async fn want(&mut self, names: &BTreeSet<String>) -> zbus::Result<()> {
        self.units.retain(|name, _| names.contains(name));
        self.paths.retain(|_, name| names.contains(name));
        for name in names {
            if !self.units.contains_key(name) {
                self.subscribe(name).await?;
                self.load(name).await?;
            }
        }
        Ok(())
    }

    /// The next thing to deal with. Cancel safe.
    pub(super) async fn next(&mut self) -> zbus::Result<Event> {
        let deadline = self.stops.iter().map(|stop| stop.deadline).min();
        let overdue = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = self.messages.next() => match message {
                Some(message) => Ok(Event::Message(message?)),
                None => Err(zbus::Error::Failure("the connection was closed".to_owned())),
            },
            () = overdue => Ok(Event::StopOverdue),
        }
    }

    /// Deals with it.
    pub(super) async fn handle(&mut self, event: Event) -> zbus::Result<()> {
        let message = match event {
            Event::Message(message) => message,
            Event::StopOverdue => {
                self.give_up_overdue_stops();
                return Ok(());
            }
        };
        if message.message_type() != Type::Signal {
            return Ok(());
        }
        let header = message.header();
        let member = header.member().map_or("", |member| member.as_str());
        match member {
            "PropertiesChanged" => self.properties_changed(&message).await,
            "UnitNew" => self.unit_new(&message).await,
            "UnitRemoved" => {
                self.unit_removed(&message);
                Ok(())
            }
            "JobRemoved" => self.job_removed(&message).await,
            "Reloading" => self.reloading(&message).await,
            "NameOwnerChanged" => self.owner_changed(&message).await,
            _ => Ok(()),
        }
    }

    /// Queues a stop job; its end answers the request.
    pub(super) async fn stop(&mut self, request: StopRequest) {
        match self.queue_stop(&request.unit).await {
            Ok(job) => self.stops.push(request.running_as(job)),
            Err(error) => request.answer(stop::of_error(&error)),
        }
    }

    async fn queue_stop(&self, unit: &str) -> zbus::Result<String> {
        // Before the call, so that the end of the job cannot be missed. It stays: units that are
        // ever stopped are few.
        self.add_match(signal("JobRemoved").arg(2, unit).build()?).await?;
        Ok(within(self.manager.stop_unit(unit, "replace")).await?.to_string())
    }

    fn give_up_overdue_stops(&mut self) {
        let now = tokio::time::Instant::now();
        for stop in self.stops.extract_if(.., |stop| stop.deadline <= now) {
            let outcome = stop::overdue(&stop.request.unit);
            stop.request.answer(outcome);
        }
    }

    async fn job_removed(&mut self, message: &Message) -> zbus::Result<()> {
        let body = message.body();
        let (_id, job, unit, result): (u32, zbus::ObjectPath<'_>, &str, &str) =
            body.deserialize()?;
        // The reader of the outcome looks at the unit next.
        if self.units.contains_key(unit) {
            self.refresh(unit).await?;
        }
        for stop in self.stops.extract_if(.., |stop| stop.job == job.as_str()) {
            stop.request.answer(stop::of_result(unit, result));
        }
        Ok(())
    }

    async fn properties_changed(&mut self, message: &Message) -> zbus::Result<()> {
        let header = message.header();
        let path = header.path().map_or("", |path| path.as_str());
        let Some(name) = self.paths.get(path).cloned() else { return Ok(()) };
        let body = message.body();
        let (interface, changed, _): (String, HashMap<String, OwnedVariant>, Vec<String>) =
            body.deserialize()?;
        if interface == UNIT {
            self.apply(&name, &changed).await;
        }
        Ok(())
    }

    async fn unit_new(&mut self, message: &Message) -> zbus::Result<()> {
        let body = message.body();
        let (name, _path): (&str, zbus::ObjectPath<'_>) = body.deserialize()?;
        if self.units.contains_key(name) { self.refresh(name).await } else { Ok(()) }
    }

    fn unit_removed(&mut self, message: &Message) {
        let body = message.body();
        let Ok((name, _path)) = body.deserialize::<(&str, zbus::ObjectPath<'_>)>() else { return };
        self.unload(name);
    }

    fn unload(&mut self, name: &str) {
        if let Some(unit) = self.units.get_mut(name) {
            *unit = cache::unloaded(&unit.load_state);
        }
    }

    /// Unit files may have come and gone.
    async fn reloading(&mut self, message: &Message) -> zbus::Result<()> {
        let begins: bool = message.body().deserialize()?;
        if begins { Ok(()) } else { self.load_all().await }
    }

    async fn owner_changed(&mut self, message: &Message) -> zbus::Result<()> {
        let body = message.body();
        let (_name, _old, new): (&str, &str, &str) = body.deserialize()?;
        if new.is_empty() {
            return Err(zbus::Error::Failure("systemd has left the bus".to_owned()));
        }
        within(self.manager.subscribe()).await?;
        self.load_all().await
    }

    async fn load_all(&mut self) -> zbus::Result<()> {
        let names: Vec<_> = self.units.keys().cloned().collect();
        for name in names {
            self.load(&name).await?;
        }
        Ok(())
    }

    /// Signals about a unit that systemd loads or unloads.
    async fn subscribe(&self, name: &str) -> zbus::Result<()> {
        for member in ["UnitNew", "UnitRemoved"] {
            self.add_match(signal(member).arg(0, name).build()?).await?;
        }
        Ok(())
    }

    /// Reads a unit, whether systemd has it in memory or not.
    async fn load(&mut self, name: &str) -> zbus::Result<()> {
        let path = within(self.manager.load_unit(name)).await?.to_string();
        self.read(name, path).await
    }

    /// Reads a unit without making systemd load it: that would announce a new unit again, which
    /// would be read again, and so on without end.
    async fn refresh(&mut self, name: &str) -> zbus::Result<()> {
        match within(self.manager.get_unit(name)).await {
            Ok(path) => self.read(name, path.to_string()).await,
            Err(zbus::Error::MethodError(..)) => {
                self.unload(name);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn read(&mut self, name: &str, path: String) -> zbus::Result<()> {
        if !self.paths.contains_key(&path) {
            let changed = MatchRule::builder()
                .msg_type(Type::Signal)
                .sender(SYSTEMD)
                .interface(PROPERTIES)
                .member("PropertiesChanged")
                .path(path.clone())
                .build()?;
            self.add_match(changed).await?;
            self.paths.insert(path.clone(), name.to_owned());
        }
        let properties = self.properties(&path, UNIT).await?;
        self.apply(name, &properties).await;
        Ok(())
    }

    async fn apply(&mut self, name: &str, properties: &HashMap<String, OwnedVariant>) {
        let mut unit = self.units.get(name).cloned().unwrap_or_else(|| cache::unloaded("stub"));
        if let Some(job) = cache::apply(&mut unit, properties) {
            unit.job = self.job_type(&job).await;
        }
        self.units.insert(name.to_owned(), unit);
    }

    /// `None` if the job has ended meanwhile; its unit's signal follows.
    async fn job_type(&self, job: &JobPath) -> Option<String> {
        let properties = self.properties(job, JOB).await.ok()?;
        <&str>::try_from(&**properties.get("JobType")?).ok().map(str::to_owned)
    }

    async fn properties(
        &self,
        path: &str,
        interface: &'static str,
    ) -> zbus::Result<HashMap<String, OwnedVariant>> {
        let proxy = PropertiesProxy::builder(&self.connection)
            .destination(BusName::try_from(SYSTEMD)?)
            .path(path.to_owned())
            .build()
            .await?;
        let all = proxy.get_all(InterfaceName::try_from(interface)?);
        within(async { Ok(all.await?) }).await
    }

    async fn add_match(&self, rule: MatchRule<'_>) -> zbus::Result<()> {
        within(async { Ok(self.bus.add_match_rule(rule).await?) }).await
    }
}

fn signal(member: &'static str) -> zbus::match_rule::Builder<'static> {
    MatchRule::builder().msg_type(Type::Signal).sender(SYSTEMD).interface(MANAGER).member(member)
}
