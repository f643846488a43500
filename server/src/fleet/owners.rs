//! The owners of GPUs that a client may see: all of them, unless the server shows each user only
//! their own.

use std::{borrow::Cow, collections::BTreeMap};

use gpumon_fleet::model::{Fleet, FleetOwner, FleetState, FleetUsage};

use crate::view::View;

const HIDDEN: &str = "This server shows each user their own alone; ask who runs it to start it without --show-processes own.";

/// Returns the fleet as a client with this view may see it.
pub(super) fn of_fleet<'a>(fleet: &'a Fleet, view: &View) -> Cow<'a, Fleet> {
    let View::Own(user) = view else {
        return Cow::Borrowed(fleet);
    };
    let mut shown = fleet.clone();
    let mut places = BTreeMap::new();
    shown.owners.clear();
    for (place, owner) in (0..).zip(&fleet.owners) {
        if is_of(owner, user.as_deref()) {
            places.insert(place, shown.owners.len() as u32);
            shown.owners.push(owner.clone());
        }
    }
    shown.holds.retain_mut(|hold| {
        places
            .get(&hold.owner)
            .map(|place| hold.owner = *place)
            .is_some()
    });
    if shown.owners.is_empty() {
        shown
            .missing
            .entry("owners".to_owned())
            .or_insert_with(|| HIDDEN.to_owned());
    }
    Cow::Owned(shown)
}

/// Returns the usage as a client with this view may see it. Unheld usage and the sum of energy
/// belong to nobody, and are always included.
pub(super) fn of_usage<'a>(usage: &'a FleetUsage, view: &View) -> Cow<'a, FleetUsage> {
    let View::Own(user) = view else {
        return Cow::Borrowed(usage);
    };
    let mut shown = usage.clone();
    let owners = usage
        .owners
        .iter()
        .filter(|used| is_of(&used.owner, user.as_deref()))
        .cloned()
        .collect();
    shown.set_owners(owners);
    // The sums of users are complete even if the list of owners is truncated.
    let own = usage
        .users
        .iter()
        .find(|group| user.is_some() && group.name.as_deref() == user.as_deref());
    if let Some(own) = own {
        shown.unlisted = own.without(&shown.users.pop().unwrap_or_default());
        shown.owners_total = own.owners.max(shown.owners_total);
        let may_have_pods = if shown.owners.is_empty() {
            &usage.namespaces
        } else {
            &shown.namespaces
        };
        if shown.unlisted.owners > 0 && !may_have_pods.is_empty() {
            shown.state = FleetState::Partial;
            shown
                .problems
                .push("The sums of namespaces lack the jobs that are not listed".to_owned());
        }
        shown.users = vec![own.clone()];
    }
    Cow::Owned(shown)
}

fn is_of(owner: &FleetOwner, user: Option<&str>) -> bool {
    user.is_some() && owner.user.as_deref() == user
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::{
        FleetHold, FleetSource, FleetSourceKind, OwnerKind, OwnerUsage, UsageGroup,
    };

    use super::*;

    fn owner(user: Option<&str>) -> FleetOwner {
        FleetOwner {
            user: user.map(Into::into),
            kind: OwnerKind::User,
            id: String::new(),
            namespace: None,
        }
    }

    #[test]
    fn where_each_user_sees_their_own_nobody_else_is_told() {
        let source = FleetSource {
            kind: FleetSourceKind::Prometheus,
            name: "http://localhost:9090".to_owned(),
        };
        let fleet = Fleet {
            owners: vec![owner(Some("bob")), owner(None), owner(Some("ana"))],
            holds: vec![
                FleetHold { gpu: 0, owner: 0 },
                FleetHold { gpu: 1, owner: 2 },
                FleetHold { gpu: 2, owner: 1 },
            ],
            ..Fleet::unread(source, 1, 15)
        };
        let shown =
            |user: Option<&str>| of_fleet(&fleet, &View::Own(user.map(Into::into))).into_owned();
        let ana = shown(Some("ana"));
        assert_eq!(
            (ana.owners, ana.holds),
            (
                vec![owner(Some("ana"))],
                vec![FleetHold { gpu: 1, owner: 0 }]
            )
        );
        assert!(ana.missing.is_empty());
        for user in [None, Some("eve")] {
            let nobody = shown(user);
            assert!(
                nobody.owners.is_empty() && nobody.holds.is_empty(),
                "{user:?}"
            );
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
        let group = |name: Option<&str>, owners, gpu_s| UsageGroup {
            name: name.map(Into::into),
            owners,
            gpu_s: Some(gpu_s),
            ..UsageGroup::default()
        };
        let usage = FleetUsage {
            from_ms: 0,
            to_ms: 1,
            state: FleetState::Current,
            problems: Vec::new(),
            owners: vec![used(Some("bob")), used(Some("ana")), used(None)],
            owners_total: 3,
            unlisted: UsageGroup::default(),
            users: vec![
                group(Some("bob"), 1, 1.0),
                group(Some("ana"), 3, 9.0),
                group(None, 1, 1.0),
            ],
            namespaces: Vec::new(),
            unheld_gpu_s: Some(5.0),
            unheld_energy_joules: None,
            energy_joules: Some(7.0),
        };
        let shown = of_usage(&usage, &View::Own(Some("ana".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total),
            (vec![used(Some("ana"))], 3)
        );
        // The list lacks two of the user's three jobs.
        assert_eq!(
            (shown.users, shown.unlisted),
            (vec![group(Some("ana"), 3, 9.0)], group(None, 2, 8.0))
        );
        assert_eq!(
            (shown.unheld_gpu_s, shown.energy_joules),
            (Some(5.0), Some(7.0))
        );
        // The list has no job of this user.
        let eve = group(Some("eve"), 2, 0.5);
        let unlisted = FleetUsage {
            users: vec![eve.clone()],
            owners: vec![used(Some("bob"))],
            ..usage.clone()
        };
        let shown = of_usage(&unlisted, &View::Own(Some("eve".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total, shown.users),
            (vec![], 2, vec![eve])
        );
        assert_eq!(shown.unlisted, group(None, 2, 0.5));
        let nobody = of_usage(&usage, &View::Own(None)).into_owned();
        assert_eq!(
            (nobody.owners_total, nobody.users, nobody.unlisted),
            (0, vec![], UsageGroup::default())
        );
    }
}
