//! The list of everything that is in the program, in the form of CycloneDX.

use super::Release;
use super::graph::{Graph, Package};
use serde_json::{Value, json};

/// The list as JSON.
pub(super) fn text(graph: &Graph, release: &Release) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(&document(graph, release))?;
    text.push(b'\n');
    Ok(text)
}

fn document(graph: &Graph, release: &Release) -> Value {
    let root = graph.root();
    let of = |id: &str| graph.needed().find(|(one, _)| *one == id).map(|(_, package)| package);
    let components: Vec<Value> = graph
        .needed()
        .filter(|(id, _)| *id != root)
        .map(|(_, package)| component(package))
        .collect();
    let dependencies: Vec<Value> = graph
        .edges
        .iter()
        .filter_map(|(id, on)| {
            let on: Vec<String> = on.iter().filter_map(|id| of(id)).map(reference).collect();
            Some(json!({ "ref": reference(of(id)?), "dependsOn": on }))
        })
        .collect();
    let program = of(root).map(|package| {
        let mut program = component(package);
        program["type"] = json!("application");
        program
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": program,
            "properties": [{ "name": "target", "value": release.target }],
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(package: &Package) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
    });
    if package.is_foreign {
        component["purl"] = json!(reference(package));
    }
    if let Some(license) = &package.license {
        // The old way to write two licences is not an expression.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::small;
    use super::*;

    #[test]
    fn everything_that_is_needed_is_listed_with_what_it_needs() {
        let release = Release { version: "1.0.0".to_owned(), target: "x".to_owned(), time: 0 };
        let document = document(&small(), &release);
        assert_eq!(document["metadata"]["component"]["name"], "sandgate");
        let names: Vec<&Value> =
            document["components"].as_array().unwrap().iter().map(|one| &one["purl"]).collect();
        assert_eq!(names, ["pkg:cargo/builds@1.0.0", "pkg:cargo/used@1.0.0"]);
        assert_eq!(document["components"][1]["hashes"][0]["content"], "abc");
        let dependencies = document["dependencies"].as_array().unwrap();
        let own = dependencies.iter().find(|one| one["ref"] == "pkg:cargo/sandgate@1.0.0").unwrap();
        assert_eq!(own["dependsOn"], json!(["pkg:cargo/builds@1.0.0", "pkg:cargo/used@1.0.0"]));
    }
}
