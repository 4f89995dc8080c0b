//! A radius per point: densities of SPH with adaptive resolution.
//!
//! `cargo run --release --example 06_adaptive_radii`

use nearfield::{kernels::WendlandC2, prelude::*};

/// Mass density ρ_i = Σ_j m_j W(d_ij, h_i): every point sums over the support of its own radius.
/// Kernels are not told the radii, so the target's comes in as a field. W of support r follows from
/// that of support 1: W(d, r) = W(d/r, 1)/r³.
pub(crate) struct Density {
    pub(crate) unit: WendlandC2,
}

#[nearfield::pair_kernel]
impl PairKernel for Density {
    type Target = f32; // radius
    type Source = f32; // mass
    type Output = f32;

    #[inline(always)]
    fn pair(&self, pair: Pair, radius: f32, mass: f32) -> f32 {
        let inverse = radius.recip();
        let weight = self.unit.value(pair.d2 * inverse * inverse);
        mass * weight * (inverse * inverse * inverse)
    }
}

/// A column of points that lie the wider apart the higher they are, all of the same mass.
fn column() -> (Vec<[f32; 3]>, Vec<f32>) {
    let (mut positions, mut spacings) = (Vec::new(), Vec::new());
    let mut z = 0.0;
    while z < 4.0 {
        let spacing = 0.05 + 0.05 * z;
        let across = (2.0 / spacing) as usize;
        for k in 0..across * across {
            let place = [k % across, k / across];
            let [x, y] = place.map(|k| k as f32 * spacing);
            positions.push([x, y, z]);
            spacings.push(spacing);
        }
        z += spacing;
    }
    (positions, spacings)
}

fn main() -> Result<(), nearfield::Error> {
    let (positions, spacings) = column();
    let radii: Vec<f32> = spacings.iter().map(|spacing| 2.5 * spacing).collect();
    let largest = radii.iter().copied().fold(0.0, f32::max);

    // The engine is built for the largest radius, and told whose radius decides.
    let mut engine = Engine::builder(largest).radii(RadiusRule::Gather).build()?;
    let points = engine.add_point_set(&positions)?;
    engine.set_radii(points, &radii)?;

    let density = Density {
        unit: WendlandC2::with_support(1.0),
    };
    let masses = vec![1.0f32; positions.len()];
    let sums = engine
        .traverse(&density, points, points)
        .targets(&radii)
        .sources(&masses)
        .run()?;
    let counts = engine.count_neighbors(points, points)?;
    println!("   z  radius  neighbours  density · spacing³ (in the middle of each layer)");
    let middle = |i: &usize| (0..2).all(|axis| (positions[*i][axis] - 1.0).abs() < 0.5);
    let mut shown = -1.0;
    for i in (0..positions.len()).filter(middle) {
        let z = positions[i][2];
        if z > shown + 0.5 {
            let itself = WendlandC2::with_support(radii[i]).value(0.0);
            let per_site = (sums[i] + itself) * spacings[i].powi(3);
            println!("{z:4.1}  {:6.3}  {:10}  {per_site:.3}", radii[i], counts[i]);
            shown = z;
        }
    }

    // Forces need every pair seen from both sides: there the larger radius decides. A rule belongs
    // to an engine; radii may change every step.
    let mut engine = Engine::builder(largest)
        .radii(RadiusRule::Symmetric)
        .lists(ListKind::Half)
        .build()?;
    let points = engine.add_point_set(&positions)?;
    engine.set_radii(points, &radii)?;
    engine.find_neighbors()?;
    let pairs = engine.neighbors(points, points)?.pairs();
    println!("{pairs} pairs by the larger radius of both points");
    Ok(())
}
