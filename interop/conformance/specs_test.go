package conformance

// specs are the specs that must pass, by their names.
//
// What keeps others from passing:
//
//   - They need controllers, a scheduler or kubelets, as most do, or Kubernetes' own services.
//   - They need webhooks or admission policies, rules of CustomResourceDefinitions in CEL, or the
//     defaults of a schema that is newer than an object.
//   - They read the document of OpenAPI v2, which is empty.
//   - They want answers in protobuf alone. Answers are in JSON, which all clients take beside it.
//   - "should support continue listing from the last key": the answer that a token has expired has
//     no other token in it, for a list that is of two states.
//   - They need subresources that are not served, such as approval and finalize, or answers to
//     reviews of access.
//   - "should manage the lifecycle of an event": it compares events but for their generation,
//     which kinds without a spec do not have in Kubernetes, and all kinds have here.
//   - "verify PriorityClass endpoints": it waits a minute for nodes, and its kind has a rule of its
//     own.
//   - "watch on custom resource definition objects" passes, and waits for a minute.
//   - "Events API should ensure that an event can be fetched": both kinds Event are one there.
var specs = []string{
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] server supports sending resources in Table format [Beta]",
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] should NOT be requested by client-go's List method when WatchListClient is enabled [Beta]",
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] should NOT be requested by dynamic client's List method when WatchListClient is enabled [Beta]",
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] should NOT be requested by metadata client's List method when WatchListClient is enabled [Beta]",
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] should be requested by informers when WatchListClient is enabled [Beta]",
	"[sig-api-machinery] API Streaming (aka. WatchList) [FeatureGate:WatchList] should be requested by metadatainformer when WatchListClient is enabled [Beta]",
	"[sig-api-machinery] API priority and fairness should support FlowSchema API operations [Conformance]",
	"[sig-api-machinery] API priority and fairness should support PriorityLevelConfiguration API operations [Conformance]",
	"[sig-api-machinery] AggregatedDiscovery should support aggregated discovery interface for CRDs [Conformance]",
	"[sig-api-machinery] AggregatedDiscovery should support raw aggregated discovery request for CRDs [Conformance]",
	"[sig-api-machinery] CRDValidationRatcheting [Privileged:ClusterAdmin] [FeatureGate:CRDValidationRatcheting] MUST NOT fail to update a resource due to JSONSchema errors on unchanged correlatable fields",
	"[sig-api-machinery] CRDValidationRatcheting [Privileged:ClusterAdmin] [FeatureGate:CRDValidationRatcheting] MUST fail to update a resource due to JSONSchema errors on changed fields",
	"[sig-api-machinery] CRDValidationRatcheting [Privileged:ClusterAdmin] [FeatureGate:CRDValidationRatcheting] MUST fail to update a resource due to JSONSchema errors on unchanged uncorrelatable fields",
	"[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition creating/deleting custom resource definition objects works [Conformance]",
	"[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition getting/updating/patching custom resource definition status sub-resource works [Conformance]",
	"[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition listing custom resource definition objects works [Conformance]",
	"[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] should include custom resource definition resources in discovery documents [Conformance]",
	"[sig-api-machinery] Discovery should accurately determine present and missing resources",
	"[sig-api-machinery] Discovery should validate PreferredVersion for each APIGroup [Conformance]",
	"[sig-api-machinery] FieldValidation should create/apply a CR with unknown fields for CRD with no validation schema [Conformance]",
	"[sig-api-machinery] FieldValidation should create/apply a valid CR for CRD with validation schema [Conformance]",
	"[sig-api-machinery] FieldValidation should create/apply an invalid CR with extra properties for CRD with validation schema [Conformance]",
	"[sig-api-machinery] FieldValidation should detect duplicates in a CR when preserving unknown fields [Conformance]",
	"[sig-api-machinery] FieldValidation should detect unknown and duplicate fields of a typed object [Conformance]",
	"[sig-api-machinery] FieldValidation should detect unknown metadata fields in both the root and embedded object of a CR [Conformance]",
	"[sig-api-machinery] FieldValidation should detect unknown metadata fields of a typed object [Conformance]",
	"[sig-api-machinery] Generated clientset should create v1 cronJobs, delete cronJobs, watch cronJobs",
	"[sig-api-machinery] Namespaces should apply an update to a Namespace [Conformance] [Serial]",
	"[sig-api-machinery] Namespaces should apply changes to a namespace status [Conformance] [Serial]",
	"[sig-api-machinery] Namespaces should patch a Namespace [Conformance] [Serial]",
	"[sig-api-machinery] OpenAPIV3 should publish OpenAPI V3 for CustomResourceDefinition",
	"[sig-api-machinery] OpenAPIV3 should round trip OpenAPI V3 for all built-in group versions",
	"[sig-api-machinery] ResourceQuota should manage the lifecycle of a ResourceQuota [Conformance]",
	"[sig-api-machinery] Server request timeout default timeout should be used if the specified timeout in the request URL is 0s",
	"[sig-api-machinery] Server request timeout should return HTTP status code 400 if the user specifies an invalid timeout in the request URL",
	"[sig-api-machinery] Server request timeout the request should be served with a default timeout if the specified timeout in the request URL exceeds maximum allowed",
	"[sig-api-machinery] ServerSideApply should create an applied object if it does not already exist",
	"[sig-api-machinery] ServerSideApply should give up ownership of a field if forced applied by a controller",
	"[sig-api-machinery] ServerSideApply should ignore conflict errors if force apply is used",
	"[sig-api-machinery] ServerSideApply should not remove a field if an owner unsets the field but other managers still have ownership of the field",
	"[sig-api-machinery] ServerSideApply should remove a field if it is owned but removed in the apply request",
	"[sig-api-machinery] ServerSideApply should work for CRDs",
	"[sig-api-machinery] ServerSideApply should work for subresources",
	"[sig-api-machinery] Servers with support for API chunking should return chunks of results for list calls [Conformance]",
	"[sig-api-machinery] Servers with support for Table transformation should return chunks of table results for list calls",
	"[sig-api-machinery] Servers with support for Table transformation should return generic metadata details across all namespaces for nodes",
	"[sig-api-machinery] Servers with support for Table transformation should return pod details",
	"[sig-api-machinery] Watchers should be able to restart watching from the last resource version observed by the previous watch [Conformance]",
	"[sig-api-machinery] Watchers should be able to start watching from a specific resource version [Conformance]",
	"[sig-api-machinery] Watchers should observe add, update, and delete watch notifications on configmaps [Conformance]",
	"[sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements of the selector [Conformance]",
	"[sig-api-machinery] Watchers should receive events on concurrent watches in same order [Conformance]",
	`[sig-api-machinery] client-go should negotiate watch and report errors with accept "application/json"`,
	`[sig-api-machinery] client-go should negotiate watch and report errors with accept "application/json,application/vnd.kubernetes.protobuf"`,
	`[sig-api-machinery] client-go should negotiate watch and report errors with accept "application/vnd.kubernetes.protobuf,application/json"`,
	"[sig-api-machinery] server version should find the server version [Conformance]",
	"[sig-apps] CronJob should support CronJob API operations [Conformance]",
	"[sig-auth] ServiceAccounts should run through the lifecycle of a ServiceAccount [Conformance]",
	"[sig-auth] ServiceAccounts should update a ServiceAccount [Conformance]",
	"[sig-instrumentation] Events API should delete a collection of events [Conformance]",
	"[sig-instrumentation] Events should delete a collection of events [Conformance]",
	"[sig-network] EndpointSlice should support creating EndpointSlice API operations [Conformance]",
	"[sig-network] Endpoints should test the lifecycle of an Endpoint [Conformance]",
	"[sig-network] Ingress API should support creating Ingress API operations [Conformance]",
	"[sig-network] IngressClass API should support creating IngressClass API operations [Conformance]",
	"[sig-network] ServiceCIDR and IPAddress API should support IPAddress API operations [Conformance]",
	"[sig-network] Services should complete a service status lifecycle [Conformance]",
	"[sig-network] Services should delete a collection of services [Conformance]",
	"[sig-node] ConfigMap should fail to create ConfigMap with empty key [Conformance]",
	"[sig-node] ConfigMap should run through a ConfigMap lifecycle [Conformance]",
	"[sig-node] ConfigMap should update ConfigMap successfully [Conformance] [NodeConformance]",
	"[sig-node] Lease lease API should be available [Conformance]",
	"[sig-node] PodTemplates should delete a collection of pod templates [Conformance]",
	"[sig-node] PodTemplates should replace a pod template [Conformance]",
	"[sig-node] PodTemplates should run the lifecycle of PodTemplates [Conformance]",
	"[sig-node] RuntimeClass should support RuntimeClasses API operations [Conformance]",
	"[sig-node] Secrets should patch a secret [Conformance]",
	"[sig-scheduling] LimitRange should list, patch and delete a LimitRange by collection [Conformance]",
	"[sig-storage] CSIInlineVolumes should run through the lifecycle of a CSIDriver [Conformance]",
	"[sig-storage] CSINodes CSI Conformance should run through the lifecycle of a csinode [Conformance]",
	"[sig-storage] CSIStorageCapacity should support CSIStorageCapacities API operations [Conformance]",
	"[sig-storage] StorageClasses CSI Conformance should run through the lifecycle of a StorageClass [Conformance]",
	"[sig-storage] VolumeAttachment Conformance should apply changes to a volumeattachment status [Conformance]",
	"[sig-storage] VolumeAttachment Conformance should run through the lifecycle of a VolumeAttachment [Conformance]",
	"[sig-storage] VolumeAttributesClass [FeatureGate:VolumeAttributesClass] should run through the lifecycle of a VolumeAttributesClass [Conformance]",
}
