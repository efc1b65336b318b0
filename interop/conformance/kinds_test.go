package conformance

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
)

// scope says whether the objects of a kind are in namespaces, and have a status.
type scope struct{ cluster, status bool }

var (
	namespaced          = scope{}
	namespacedAndStatus = scope{status: true}
	cluster             = scope{cluster: true}
	clusterAndStatus    = scope{cluster: true, status: true}
)

// stores opens the stores of the kinds that the specs use besides those of package corekinds.
func stores(t *testing.T) []serve.Provider {
	const (
		flowGroup    = "flowcontrol.apiserver.k8s.io"
		storageGroup = "storage.k8s.io"
	)
	return []serve.Provider{
		open(t, "", "Endpoints", namespaced, plural[core.Endpoints]("endpoints")),
		open[core.LimitRange](t, "", "LimitRange", namespaced),
		open(t, "", "Node", clusterAndStatus, selectable("spec.unschedulable", func(n *core.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) })),
		open(t, "", "Pod", namespacedAndStatus, column("Ready", func(p *core.Pod) any { return string(p.Status.Phase) })),
		open[core.PodTemplate](t, "", "PodTemplate", namespaced),
		open[core.ResourceQuota](t, "", "ResourceQuota", namespacedAndStatus),
		open[core.Service](t, "", "Service", namespacedAndStatus),
		open[core.ServiceAccount](t, "", "ServiceAccount", namespaced),
		open[apps.Deployment](t, "apps", "Deployment", namespacedAndStatus),
		open[batch.CronJob](t, "batch", "CronJob", namespacedAndStatus),
		open[discovery.EndpointSlice](t, "discovery.k8s.io", "EndpointSlice", namespaced),
		open[flowcontrol.FlowSchema](t, flowGroup, "FlowSchema", clusterAndStatus),
		open[flowcontrol.PriorityLevelConfiguration](t, flowGroup, "PriorityLevelConfiguration", clusterAndStatus),
		open[networking.Ingress](t, "networking.k8s.io", "Ingress", namespacedAndStatus),
		open[networking.IngressClass](t, "networking.k8s.io", "IngressClass", cluster),
		open(t, "networking.k8s.io", "IPAddress", cluster, rules(registry.Strategy[networking.IPAddress]{ValidateName: validateAddress})),
		open[node.RuntimeClass](t, "node.k8s.io", "RuntimeClass", cluster),
		open[scheduling.PriorityClass](t, "scheduling.k8s.io", "PriorityClass", cluster),
		open[storage.CSIDriver](t, storageGroup, "CSIDriver", cluster),
		open[storage.CSINode](t, storageGroup, "CSINode", cluster),
		open[storage.CSIStorageCapacity](t, storageGroup, "CSIStorageCapacity", namespaced, plural[storage.CSIStorageCapacity]("csistoragecapacities")),
		open[storage.StorageClass](t, storageGroup, "StorageClass", cluster),
		open[storage.VolumeAttachment](t, storageGroup, "VolumeAttachment", clusterAndStatus),
		open[storage.VolumeAttributesClass](t, storageGroup, "VolumeAttributesClass", cluster),
	}
}

// types are those that Kubernetes applies by.
var types = applyconfigurations.NewTypeConverter(scheme.Scheme)

// open opens the store of a kind of Kubernetes' API types, with all that typed clients use.
func open[T any, P interface {
	registry.Ptr[T]
	protobuf.Message[T]
}](t *testing.T, group, name string, s scope, edit ...func(*registry.Config[T])) serve.Provider {
	t.Helper()
	cfg := registry.Config[T]{
		Kind:  registry.Kind{Group: group, Version: "v1", Kind: name, ClusterScoped: s.cluster, Status: s.status},
		Apply: apply.WithTypes(types), StrategicMerge: strategic.New, Decoders: protobuf.Decoders[T, P](name),
	}
	for _, e := range edit {
		e(&cfg)
	}
	store, err := registry.New[T, P](cfg)
	require.NoError(t, err, name)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func plural[T any](name string) func(*registry.Config[T]) {
	return func(cfg *registry.Config[T]) { cfg.Kind.Plural = name }
}

func selectable[T any](name string, value func(*T) string) func(*registry.Config[T]) {
	return func(cfg *registry.Config[T]) { cfg.Fields = map[string]func(*T) string{name: value} }
}

func column[T any](name string, value func(*T) any) func(*registry.Config[T]) {
	return func(cfg *registry.Config[T]) {
		cfg.Columns = []registry.Column[T]{{Name: name, Type: "string", Value: value}}
	}
}

func rules[T any](s registry.Strategy[T]) func(*registry.Config[T]) {
	return func(cfg *registry.Config[T]) { cfg.Strategy = s }
}

// validateAddress refuses names that are not IP addresses.
func validateAddress(name string, _ bool) []string {
	if _, err := netip.ParseAddr(name); err != nil {
		return []string{err.Error()}
	}
	return nil
}
