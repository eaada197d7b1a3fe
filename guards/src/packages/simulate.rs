//! Cargo's feature resolution for one invocation, by guppy.

use super::{Closure, Edge, Origin, Package, PackagesError};
use crate::policy::{DefaultFeatures, Program};
use cargo_metadata::Metadata;
use guppy::graph::cargo::{CargoOptions, CargoResolverVersion, CargoSet};
use guppy::graph::feature::{FeatureSet, StandardFeatures, named_feature_filter};
use guppy::graph::{BuildTargetId, PackageGraph, PackageMetadata};
use guppy::platform::{Platform, PlatformSpec, TargetFeatures};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A workspace as `cargo metadata --all-features` describes it.
pub(crate) struct Workspace {
    graph: PackageGraph,
    /// Declarations: feature tables and dependency lists.
    pub(crate) declared: BTreeMap<String, cargo_metadata::Package>,
    /// Every package that Cargo knows of, by id, of any target and feature.
    pub(crate) known: BTreeMap<String, Package>,
    /// Root of the workspace.
    pub(crate) root: PathBuf,
}

/// Reads the output of `cargo metadata --format-version 1 --all-features`.
///
/// # Errors
/// When it is not that.
pub(crate) fn read_metadata(json: &str) -> Result<Workspace, PackagesError> {
    let metadata = |message: String| PackagesError::Metadata { message };
    let graph = PackageGraph::from_json(json).map_err(|error| metadata(error.to_string()))?;
    let declared: Metadata =
        serde_json::from_str(json).map_err(|error| metadata(error.to_string()))?;
    let known = graph
        .packages()
        .map(|package| (package.id().repr().to_owned(), describe(&package)))
        .collect();
    Ok(Workspace {
        known,
        root: declared.workspace_root.clone().into_std_path_buf(),
        declared: declared
            .packages
            .into_iter()
            .map(|package| (package.id.repr.clone(), package))
            .collect(),
        graph,
    })
}

fn describe(package: &PackageMetadata<'_>) -> Package {
    let lib_name = package
        .build_target(&BuildTargetId::Library)
        .map(|target| target.name().replace('-', "_"));
    let source = package.source();
    let origin = if source.is_workspace() {
        Origin::Workspace
    } else if source.is_path() {
        Origin::Path
    } else if source
        .external_source()
        .is_some_and(|source| source.starts_with("git+"))
    {
        Origin::Git
    } else {
        Origin::Registry
    };
    Package {
        id: package.id().repr().to_owned(),
        name: package.name().to_owned(),
        version: package.version().clone(),
        lib_name,
        origin,
        dir: package
            .manifest_path()
            .parent()
            .map(|dir| dir.as_std_path().to_owned())
            .unwrap_or_default(),
    }
}

/// Whether the workspace has what `program` names: packages, the program, features.
///
/// # Errors
/// What it does not have.
pub(crate) fn check_names(workspace: &Workspace, program: &Program) -> Result<(), PackagesError> {
    check_program(&member(workspace, &program.package)?, program)?;
    for name in &program.together_with {
        member(workspace, name)?;
    }
    Ok(())
}

/// The closure of `program` built for `target` by a host `host`.
///
/// # Errors
/// When the workspace has no such package, program, feature, or the target is unknown.
pub(crate) fn simulate(
    workspace: &Workspace,
    program: &Program,
    target: &str,
    host: &str,
) -> Result<Closure, PackagesError> {
    let graph = &workspace.graph;
    let resolve = |error: guppy::Error| PackagesError::Resolve {
        message: error.to_string(),
    };
    let own = member(workspace, &program.package)?;
    check_program(&own, program)?;
    let mut initials = requested(&own, program);
    for name in &program.together_with {
        let other = member(workspace, name)?;
        initials = initials.union(&other.to_feature_set(StandardFeatures::Default));
    }
    let mut options = CargoOptions::new();
    options
        .set_resolver(CargoResolverVersion::V2)
        .set_include_dev(false)
        .set_target_platform(platform(target)?)
        .set_host_platform(platform(host)?);
    let none = graph.feature_graph().resolve_none();
    let set = CargoSet::new(initials, none, &options).map_err(resolve)?;
    let enabled = enabled_features(&set);
    let edges = taken_edges(&set, &platform(target)?);
    let program_id = own.id().repr().to_owned();
    let mine = reachable_from(&program_id, &edges);
    Ok(Closure {
        packages: enabled
            .iter()
            .filter(|(id, _)| mine.contains(*id))
            .map(|(id, features)| (id.clone(), features.clone()))
            .collect(),
        edges: edges
            .into_iter()
            .filter(|edge| mine.contains(&edge.from))
            .collect(),
        invocation: enabled,
        program: program_id,
    })
}

fn member<'g>(workspace: &'g Workspace, name: &str) -> Result<PackageMetadata<'g>, PackagesError> {
    workspace
        .graph
        .workspace()
        .member_by_name(name)
        .map_err(|_| PackagesError::UnknownPackage {
            name: name.to_owned(),
            root: workspace.root.display().to_string(),
        })
}

fn check_program(own: &PackageMetadata<'_>, program: &Program) -> Result<(), PackagesError> {
    if own
        .build_target(&BuildTargetId::Binary(&program.bin))
        .is_none()
    {
        return Err(PackagesError::UnknownProgram {
            package: program.package.clone(),
            bin: program.bin.clone(),
        });
    }
    let unknown = program
        .features
        .iter()
        .find(|feature| !own.named_features().any(|named| named == feature.as_str()));
    match unknown {
        Some(feature) => Err(PackagesError::UnknownFeature {
            package: program.package.clone(),
            feature: feature.clone(),
        }),
        None => Ok(()),
    }
}

fn requested<'g>(own: &PackageMetadata<'g>, program: &Program) -> FeatureSet<'g> {
    let base = match program.default_features {
        DefaultFeatures::On => StandardFeatures::Default,
        DefaultFeatures::Off => StandardFeatures::None,
    };
    own.to_feature_set(named_feature_filter(
        base,
        program.features.iter().map(String::as_str),
    ))
}

fn platform(triple: &str) -> Result<PlatformSpec, PackagesError> {
    let platform = Platform::new(triple.to_owned(), TargetFeatures::Unknown).map_err(|error| {
        PackagesError::UnknownTarget {
            target: triple.to_owned(),
            message: error.to_string(),
        }
    })?;
    Ok(PlatformSpec::from(platform))
}

/// Packages that are compiled for the target, with their named features.
fn enabled_features(set: &CargoSet<'_>) -> BTreeMap<String, BTreeSet<String>> {
    set.target_features()
        .packages_with_features(guppy::graph::DependencyDirection::Forward)
        .map(|list| {
            let features = list.named_features().map(str::to_owned).collect();
            (list.package().id().repr().to_owned(), features)
        })
        .collect()
}

fn taken_edges(set: &CargoSet<'_>, target: &PlatformSpec) -> Vec<Edge> {
    let always = guppy::platform::EnabledTernary::Enabled;
    let mut edges: Vec<Edge> = set
        .target_links()
        .filter(|link| link.normal().is_present() && !link.to().is_proc_macro())
        .map(|link| {
            let (from, to) = link.endpoints();
            let own_name = to
                .build_target(&BuildTargetId::Library)
                .map_or(to.name(), |target| target.name());
            let renamed = link.resolved_name().replace('-', "_") != own_name.replace('-', "_");
            let required = link.normal().status().required_status().enabled_on(target);
            Edge {
                from: from.id().repr().to_owned(),
                to: to.id().repr().to_owned(),
                rename: renamed.then(|| link.resolved_name().to_owned()),
                optional: required != always,
                dependency_name: link.dep_name().to_owned(),
            }
        })
        .collect();
    edges.sort();
    edges.dedup();
    edges
}

fn reachable_from(start: &str, edges: &[Edge]) -> BTreeSet<String> {
    let mut found = BTreeSet::from([start.to_owned()]);
    let mut open = vec![start.to_owned()];
    while let Some(id) = open.pop() {
        let first = edges.partition_point(|edge| edge.from < id);
        for edge in edges[first..].iter().take_while(|edge| edge.from == id) {
            if found.insert(edge.to.clone()) {
                open.push(edge.to.clone());
            }
        }
    }
    found
}
