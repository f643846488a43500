//! Who of those that hold GPUs is told to whom: all of them to everybody, unless the server shows each user their own alone.

use std::{borrow::Cow, collections::BTreeMap};

use gpumon_fleet::model::{Fleet, FleetOwner, FleetUsage};

use crate::view::View;

const HIDDEN: &str =
    "This server shows each user their own alone; ask who runs it to start it without --show-processes own.";

/// The same as a client of this view may know it.
pub(super) fn of_fleet<'a>(fleet: &'a Fleet, view: &View) -> Cow<'a, Fleet> {
    let View::Own(user) = view else { return Cow::Borrowed(fleet) };
    let mut shown = fleet.clone();
    let mut places = BTreeMap::new();
    shown.owners.clear();
    for (place, owner) in (0..).zip(&fleet.owners) {
        if is_of(owner, user.as_deref()) {
            places.insert(place, shown.owners.len() as u32);
            shown.owners.push(owner.clone());
        }
    }
    shown.holds.retain_mut(|hold| places.get(&hold.owner).map(|place| hold.owner = *place).is_some());
    if shown.owners.is_empty() {
        shown.missing.entry("owners".to_owned()).or_insert_with(|| HIDDEN.to_owned());
    }
    Cow::Owned(shown)
}

/// The same as a client of this view may know it. What nobody held, and the sum of energies, are nobody's.
pub(super) fn of_usage<'a>(usage: &'a FleetUsage, view: &View) -> Cow<'a, FleetUsage> {
    let View::Own(user) = view else { return Cow::Borrowed(usage) };
    let mut shown = usage.clone();
    shown.owners.retain(|used| is_of(&used.owner, user.as_deref()));
    shown.owners_total = shown.owners.len() as u32;
    Cow::Owned(shown)
}

fn is_of(owner: &FleetOwner, user: Option<&str>) -> bool {
    user.is_some() && owner.user.as_deref() == user
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::{FleetHold, FleetSource, FleetSourceKind, FleetState, OwnerKind, OwnerUsage};

    use super::*;

    fn owner(user: Option<&str>) -> FleetOwner {
        FleetOwner { user: user.map(Into::into), kind: OwnerKind::User, id: String::new(), namespace: None }
    }

    #[test]
    fn where_each_user_sees_their_own_nobody_else_is_told() {
        let source = FleetSource { kind: FleetSourceKind::Prometheus, name: "http://localhost:9090".to_owned() };
        let fleet = Fleet {
            owners: vec![owner(Some("bob")), owner(None), owner(Some("ana"))],
            holds: vec![FleetHold { gpu: 0, owner: 0 }, FleetHold { gpu: 1, owner: 2 }, FleetHold { gpu: 2, owner: 1 }],
            ..Fleet::unread(source, 1, 15)
        };
        let shown = |user: Option<&str>| of_fleet(&fleet, &View::Own(user.map(Into::into))).into_owned();
        let ana = shown(Some("ana"));
        assert_eq!((ana.owners, ana.holds), (vec![owner(Some("ana"))], vec![FleetHold { gpu: 1, owner: 0 }]));
        assert!(ana.missing.is_empty());
        for user in [None, Some("eve")] {
            let nobody = shown(user);
            assert!(nobody.owners.is_empty() && nobody.holds.is_empty(), "{user:?}");
            assert_eq!(nobody.missing["owners"], HIDDEN);
        }
        assert_eq!(*of_fleet(&fleet, &View::ANYBODY), fleet);
    }

    #[test]
    fn sums_are_nobodys_and_stay() {
        let used = |user| OwnerUsage {
            owner: owner(user),
            gpu_s: Some(1.0),
            active_gpu_s: None,
            energy_joules: None,
            nodes: 1,
        };
        let usage = FleetUsage {
            from_ms: 0,
            to_ms: 1,
            state: FleetState::Current,
            problems: Vec::new(),
            owners: vec![used(Some("bob")), used(Some("ana")), used(None)],
            owners_total: 3,
            unheld_gpu_s: Some(5.0),
            unheld_energy_joules: None,
            energy_joules: Some(7.0),
        };
        let shown = of_usage(&usage, &View::Own(Some("ana".into()))).into_owned();
        assert_eq!((shown.owners, shown.owners_total), (vec![used(Some("ana"))], 1));
        assert_eq!((shown.unheld_gpu_s, shown.energy_joules), (Some(5.0), Some(7.0)));
        assert_eq!(of_usage(&usage, &View::Own(None)).owners_total, 0);
    }
}
