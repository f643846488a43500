//! The owners of GPUs that a client may see: all owners, unless the server shows each user only
//! their own processes.

use std::{borrow::Cow, collections::BTreeMap};

use gpumon_fleet::model::{Fleet, FleetOwner, FleetState, FleetUsage};

use crate::view::View;

const HIDDEN_OWNERS_MESSAGE: &str = "This server shows each user only their own processes; ask \
                                     its administrator to start it without --show-processes own.";

/// Returns the fleet with only the owners that a client with this view may see.
pub(super) fn filter_fleet<'a>(fleet: &'a Fleet, view: &View) -> Cow<'a, Fleet> {
    let View::Own(user) = view else {
        return Cow::Borrowed(fleet);
    };
    let mut shown = fleet.clone();
    let mut places = BTreeMap::new();
    shown.owners.clear();
    for (place, owner) in (0..).zip(&fleet.owners) {
        if owner_is_user(owner, user.as_deref()) {
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
            .or_insert_with(|| HIDDEN_OWNERS_MESSAGE.to_owned());
    }
    Cow::Owned(shown)
}

/// Returns the usage that a client with this view may see. Unheld usage and total energy belong to
/// nobody, and are always included.
pub(super) fn filter_usage<'a>(usage: &'a FleetUsage, view: &View) -> Cow<'a, FleetUsage> {
    let View::Own(user) = view else {
        return Cow::Borrowed(usage);
    };
    let mut shown = usage.clone();
    let owners = usage
        .owners
        .iter()
        .filter(|used| owner_is_user(&used.owner, user.as_deref()))
        .cloned()
        .collect();
    shown.set_owners(owners);
    // A user's totals are complete even if the list of owners was truncated.
    let own = usage
        .users
        .iter()
        .find(|group| user.is_some() && group.name.as_deref() == user.as_deref());
    if let Some(own) = own {
        shown.unlisted = own.subtract_part(&shown.users.pop().unwrap_or_default());
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
                .push("The sums for namespaces do not include unlisted jobs".to_owned());
        }
        shown.users = vec![own.clone()];
    }
    Cow::Owned(shown)
}

fn owner_is_user(owner: &FleetOwner, user: Option<&str>) -> bool {
    user.is_some() && owner.user.as_deref() == user
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::{
        FleetHold, FleetSource, FleetSourceKind, OwnerKind, OwnerUsage, UsageGroup,
    };

    use super::*;

    fn make_owner(user: Option<&str>) -> FleetOwner {
        FleetOwner {
            user: user.map(Into::into),
            kind: OwnerKind::User,
            id: String::new(),
            namespace: None,
        }
    }

    #[test]
    fn restricted_view_hides_other_owners() {
        let source = FleetSource {
            kind: FleetSourceKind::Prometheus,
            name: "http://localhost:9090".to_owned(),
        };
        let fleet = Fleet {
            owners: vec![
                make_owner(Some("bob")),
                make_owner(None),
                make_owner(Some("ana")),
            ],
            holds: vec![
                FleetHold { gpu: 0, owner: 0 },
                FleetHold { gpu: 1, owner: 2 },
                FleetHold { gpu: 2, owner: 1 },
            ],
            ..Fleet::new_unread(source, 1, 15)
        };
        let shown = |user: Option<&str>| {
            filter_fleet(&fleet, &View::Own(user.map(Into::into))).into_owned()
        };
        let ana = shown(Some("ana"));
        assert_eq!(
            (ana.owners, ana.holds),
            (
                vec![make_owner(Some("ana"))],
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
            assert_eq!(nobody.missing["owners"], HIDDEN_OWNERS_MESSAGE);
        }
        assert_eq!(*filter_fleet(&fleet, &View::UNKNOWN_CLIENT), fleet);
    }

    #[test]
    fn sums_of_unheld_gpus_are_always_visible() {
        let used = |user| OwnerUsage {
            owner: make_owner(user),
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
        let shown = filter_usage(&usage, &View::Own(Some("ana".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total),
            (vec![used(Some("ana"))], 3)
        );
        // The list of owners is truncated: two of the user's three jobs are not in it.
        assert_eq!(
            (shown.users, shown.unlisted),
            (vec![group(Some("ana"), 3, 9.0)], group(None, 2, 8.0))
        );
        assert_eq!(
            (shown.unheld_gpu_s, shown.energy_joules),
            (Some(5.0), Some(7.0))
        );
        // None of this user's jobs is in the truncated list.
        let eve = group(Some("eve"), 2, 0.5);
        let unlisted = FleetUsage {
            users: vec![eve.clone()],
            owners: vec![used(Some("bob"))],
            ..usage.clone()
        };
        let shown = filter_usage(&unlisted, &View::Own(Some("eve".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total, shown.users),
            (vec![], 2, vec![eve])
        );
        assert_eq!(shown.unlisted, group(None, 2, 0.5));
        let nobody = filter_usage(&usage, &View::Own(None)).into_owned();
        assert_eq!(
            (nobody.owners_total, nobody.users, nobody.unlisted),
            (0, vec![], UsageGroup::default())
        );
    }
}
