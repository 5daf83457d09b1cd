//! What the client reads is what the service has.

use super::*;
use crate::dbus::client::{Snapshot, fetch};

#[tokio::test]
async fn the_client_reads_what_the_service_publishes() {
    let rig = Rig::new();
    let client = rig.client().await;
    assert_eq!(fetch(&client).await.unwrap(), Snapshot::from(&sample()));
    rig.change(|status| {
        status.reason = None;
        status.holds.clear();
        status.modules[0].ref_count = -1;
        status.clients[0].client.num_alloc_mrs = None;
    });
    let now = rig.status.borrow().clone();
    let read = fetch(&client).await.unwrap();
    assert_eq!(read, Snapshot::from(&*now));
    assert_eq!((read.held, read.modules[0].ref_count), (false, None));
}
