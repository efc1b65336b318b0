package controllerruntime

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
	"github.com/watchmill/watchmill/serve"
)

// kinds opens the stores of the kinds that the tests use.
func kinds(t *testing.T) []serve.Provider {
	const cluster, namespaced = true, false
	pods := open[core.Pod](t, "", "Pod", namespaced)
	accounts := open[core.ServiceAccount](t, "", "ServiceAccount", namespaced)
	return []serve.Provider{
		pods, accounts,
		open[core.ConfigMap](t, "", "ConfigMap", namespaced),
		open[core.Namespace](t, "", "Namespace", cluster),
		open[core.Node](t, "", "Node", cluster),
		open(t, "", "Secret", namespaced, func(cfg *registry.Config[core.Secret]) { cfg.Strategy.Default = defaultSecret }),
		open(t, "apps", "Deployment", namespaced, scaled(func(d *apps.Deployment) **int32 { return &d.Spec.Replicas })),
		open[apps.ReplicaSet](t, "apps", "ReplicaSet", namespaced),
		open[apps.StatefulSet](t, "apps", "StatefulSet", namespaced),
		open[certificates.CertificateSigningRequest](t, "certificates.k8s.io", "CertificateSigningRequest", cluster),
		open(t, "rbac.authorization.k8s.io", "ClusterRole", cluster, func(cfg *registry.Config[rbac.ClusterRole]) {
			cfg.Strategy.ValidateName = func(string, bool) []string { return nil } // they need not be names of hosts
		}),
		action(t, "Pod", "eviction", registry.Kind{Group: "policy", Version: "v1", Kind: "Eviction"},
			func(ctx context.Context, key string, _ *policy.Eviction, opts registry.WriteOptions) error {
				_, _, err := pods.Delete(ctx, key, registry.DeleteOptions{DryRun: opts.DryRun})
				return err
			}),
		action(t, "Pod", "binding", registry.Kind{Version: "v1", Kind: "Binding"},
			func(ctx context.Context, key string, b *core.Binding, opts registry.WriteOptions) error {
				_, _, err := pods.Update(ctx, key, func(old *engine.Object[core.Pod]) (core.Pod, error) {
					pod := old.Value
					pod.Spec.NodeName = b.Target.Name
					return pod, nil
				}, opts)
				return err
			}),
		action(t, "ServiceAccount", "token", registry.Kind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
			func(ctx context.Context, key string, r *authentication.TokenRequest, _ registry.WriteOptions) error {
				r.Status.Token = "token of " + key
				_, err := accounts.Engine().Get(ctx, key, engine.GetOptions{Read: engine.Latest()})
				return err
			}),
	}
}

// types are those that Kubernetes applies by.
var types = applyconfigurations.NewTypeConverter(scheme.Scheme)

// open opens the store of a kind of Kubernetes' API types, with all that typed clients use.
func open[T any, P interface {
	registry.Ptr[T]
	protobuf.Message[T]
}](t *testing.T, group, name string, cluster bool, edit ...func(*registry.Config[T])) *registry.Store[T] {
	t.Helper()
	_, hasStatus := reflect.TypeFor[T]().FieldByName("Status")
	cfg := registry.Config[T]{
		Kind:  registry.Kind{Group: group, Version: "v1", Kind: name, ClusterScoped: cluster, Status: hasStatus},
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

// action returns a subresource of a kind of the core group.
func action[T any, P interface {
	registry.Ptr[T]
	protobuf.Message[T]
}](t *testing.T, of, name string, kind registry.Kind, do func(ctx context.Context, key string, o *T, opts registry.WriteOptions) error) serve.Provider {
	t.Helper()
	a, err := registry.NewAction[T, P](registry.ActionConfig[T]{
		Of: registry.Kind{Version: "v1", Kind: of}, Subresource: name, Kind: kind, Decoders: protobuf.Decoders[T, P](kind.Kind), Do: do,
	})
	require.NoError(t, err, name)
	return a
}

// scaled gives a kind its scale, of the number to which a function points.
func scaled[T any](replicas func(*T) **int32) func(*registry.Config[T]) {
	return func(cfg *registry.Config[T]) {
		cfg.Scale = &registry.Scale[T]{
			Replicas: func(o *T) (int32, bool) {
				n := *replicas(o)
				if n == nil {
					return 0, false
				}
				return *n, true
			},
			SetReplicas: func(o *T, n int32) { *replicas(o) = &n },
		}
	}
}

// defaultSecret makes data of the text that a secret is written with, as Kubernetes does.
func defaultSecret(s *core.Secret) {
	for key, text := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}
