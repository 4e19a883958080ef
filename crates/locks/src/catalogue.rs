//! The catalogue of lock objects.
//!
//! To add an object, write its folder, declare it in `lib.rs`, and add a line to [`OBJECTS`].

use super::binding::Arguments;
use super::model::Model;
use super::role::{Plain, Role, Shape, Shared, Site};
use super::script_set::ScriptSet;
use super::{fair, faster, latch, multi, own, permit, rate, rlock, rw, semaphore};

/// A type of lock object: how its scripts are recognised and called, and the model that judges them.
pub struct Object {
    /// The name in commands and reports.
    pub name: &'static str,
    pub roles: &'static [Role],
    /// Where clients send its scripts, in all releases.
    pub sites: &'static [Site],
    /// Where older clients send plain commands instead.
    pub plain: &'static [Plain],
    /// The class of an object that has no scripts of its own.
    pub class: Option<&'static str>,
    /// The shapes of its scripts. Over all objects, the first shape that matches decides.
    pub shapes: &'static [Shape],
    /// Its scripts whose texts another object uses too.
    pub shared: &'static [Shared],
    pub arguments: &'static Arguments,
    /// Creates a model for the scripts of a release.
    pub model: fn(&ScriptSet) -> Box<dyn Model>,
}

/// All objects, in the order in which they are searched and reported.
pub const OBJECTS: &[&Object] = &[
    &rlock::RLOCK,
    &rw::READ_WRITE,
    &fair::FAIR,
    &fair::NON_REENTRANT,
    &rlock::SPIN,
    &rlock::FENCED,
    &rlock::NON_REENTRANT,
    &semaphore::SEMAPHORE,
    &permit::PERMIT_SEMAPHORE,
    &latch::COUNT_DOWN_LATCH,
    &rate::RATE_LIMITER,
    &faster::FASTER_MULTI_LOCK,
    &multi::MULTI,
    &multi::RED_LOCK,
    &own::OWN,
];

/// Returns the roles of the scripts at a site, or `None` if the site is not known.
pub fn roles_at(site: &str) -> Option<&'static [Role]> {
    let mut sites = OBJECTS.iter().flat_map(|object| object.sites);
    sites.find(|(known, _)| *known == site).map(|(_, roles)| *roles)
}

/// Returns the object that declares a role.
pub fn home(role: Role) -> Option<&'static Object> {
    OBJECTS.iter().copied().find(|object| object.roles.contains(&role))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_and_role_belongs_to_one_object() {
        let names: BTreeSet<&str> = OBJECTS.iter().map(|object| object.name).collect();
        assert_eq!(names.len(), OBJECTS.len());
        let roles: BTreeSet<Role> = Role::all().collect();
        assert_eq!(roles.len(), Role::all().count());
    }

    #[test]
    fn shapes_and_shared_texts_lead_to_roles_of_their_object() {
        for object in OBJECTS {
            let shapes = object.shapes.iter().map(Shape::role);
            for role in shapes.chain(object.shared.iter().map(|shared| shared.role)) {
                assert!(object.roles.contains(&role), "{}: {}", object.name, role.name());
            }
            assert!(object.shared.iter().all(|shared| home(shared.of).is_some()), "{}", object.name);
        }
    }
}
