// Judges resources of operators, given as a JSON list on standard input: those of KEDA and of Prometheus's operator.
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const installed = (name) => import(pathToFileURL(`${process.argv[2]}/node_modules/@kubernetes-models/${name}/index.js`));
const models = {
  "keda.sh/v1alpha1": await installed("keda/keda.sh/v1alpha1"),
  "monitoring.coreos.com/v1": await installed("prometheus-operator/monitoring.coreos.com/v1"),
};
const OF_NO_TYPE = Symbol("a value of no type");

function isValid(Model, resource) {
  try {
    new Model(resource).validate();
    return true;
  } catch {
    return false;
  }
}

// The schemas pass over fields that they do not know. One that they know refuses a value of no type.
function refuseUnknown(Model, resource, part, path) {
  for (const [name, value] of Object.entries(part)) {
    part[name] = OF_NO_TYPE;
    const isUnknown = isValid(Model, resource);
    part[name] = value;
    if (isUnknown) throw new Error(`${resource.kind}: nobody knows ${path}.${name}`);
    if (value !== null && typeof value === "object") refuseUnknown(Model, resource, value, `${path}.${name}`);
  }
}

const resources = JSON.parse(await text(process.stdin));
for (const resource of resources) {
  const Model = models[resource.apiVersion]?.[resource.kind];
  if (Model === undefined) throw new Error(`nobody knows ${resource.apiVersion} ${resource.kind}`);
  new Model(resource).validate();
  refuseUnknown(Model, resource, resource.spec, "spec");
}
console.log(`Summary: ${resources.length} resources of operators - all valid`);
