//! How space is divided among the ranks, as every engine on ranks keeps it.
//!
//! **Invariant:** all ranks have the same domains, because they follow from numbers that all have
//! agreed on.

use crate::{
    Error,
    cell_classes::CellClasses,
    communicator::Communicator,
    cut::Work,
    domains::Domains,
    error::{Failure, Refusal},
};
use nearfield_grid::{Bounds, Domain, Lattice, Radius};

/// The search radius, the box, and the domains of the ranks.
pub(crate) struct Division {
    pub(crate) radius: Radius,
    pub(crate) domain: Domain,
    /// None before the first points.
    pub(crate) domains: Option<Domains>,
    /// Classes of the cells of `domains`.
    pub(crate) cell_classes: CellClasses,
}

impl Division {
    /// Space that is not divided yet.
    pub(crate) fn new(radius: Radius, domain: Domain, cell_classes: CellClasses) -> Self {
        Self {
            radius,
            domain,
            domains: None,
            cell_classes,
        }
    }

    /// The lattice for points within bounds that all ranks know, so it is the same on all.
    pub(crate) fn lattice(&self, bounds: &Bounds) -> Result<Lattice, Error> {
        self.lattice_with(self.radius, bounds)
    }

    /// The same if the radius were another one.
    pub(crate) fn lattice_with(&self, radius: Radius, bounds: &Bounds) -> Result<Lattice, Error> {
        let lattice = Lattice::new(radius, self.domain, 1, bounds);
        lattice.map_err(|error| Refusal::new(error).by(0))
    }

    /// Whether the domains are made of the cells of this lattice.
    pub(crate) fn has(&self, lattice: &Lattice) -> bool {
        let domains = self.domains.as_ref();
        domains.is_some_and(|domains| domains.lattice() == lattice)
    }

    /// Replaces the domains.
    pub(crate) fn put(&mut self, domains: Domains) {
        self.domains = Some(domains);
        self.cell_classes.forget();
    }

    /// Cuts domains by the work that this rank and the others know, and puts them in place. Returns
    /// false if they are the same as before. `shares` computes the shares of the ranks from the
    /// work that they have now, the same on all. Collective.
    pub(crate) fn cut(
        &mut self,
        comm: &mut Communicator,
        mut domains: Domains,
        work: Result<Work, impl Into<Failure>>,
        shares: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<bool, Error> {
        let work = comm.agree(work, &mut [])?;
        if comm.ranks() > 1 {
            domains.set_cuts(work.cuts_by(comm, shares)?);
        }
        let changed = self.domains.as_ref() != Some(&domains);
        if changed {
            self.put(domains);
        }
        Ok(changed)
    }
}
