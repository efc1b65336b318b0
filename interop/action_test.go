package interop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
)

// A typed client evicts pods, as a drain of nodes does.
func TestTypedClient_EvictsPods(t *testing.T) {
	kind := registry.Kind{Version: "v1", Kind: "Pod"}
	pods, err := registry.New(registry.Config[core.Pod]{Kind: kind, Decoders: protobuf.Decoders[core.Pod]("Pod")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pods.Close()) })
	evictions, err := registry.NewAction(registry.ActionConfig[policy.Eviction]{
		Of: kind, Subresource: "eviction", Kind: registry.Kind{Group: "policy", Version: "v1", Kind: "Eviction"},
		Decoders: protobuf.Decoders[policy.Eviction]("Eviction"),
		Do: func(ctx context.Context, key string, _ *policy.Eviction, opts registry.WriteOptions) error {
			_, _, err := pods.Delete(ctx, key, registry.DeleteOptions{DryRun: opts.DryRun})
			return err
		},
	})
	require.NoError(t, err)
	_, cfg := served(t, serve.Config{Resources: []serve.Provider{pods, evictions}})
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	c := client.CoreV1().Pods("default")
	_, err = c.Create(t.Context(), &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "a"}}, meta.CreateOptions{})
	require.NoError(t, err)
	eviction := &policy.Eviction{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "a"}}
	require.NoError(t, c.EvictV1(t.Context(), eviction))
	_, err = c.Get(t.Context(), "a", meta.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	require.True(t, apierrors.IsNotFound(c.EvictV1(t.Context(), eviction)))
}

func TestKubectl_CreatesTokens(t *testing.T) {
	for _, program := range kubectls {
		t.Run(program.minor, func(t *testing.T) {
			kind := registry.Kind{Version: "v1", Kind: "ServiceAccount", ShortNames: []string{"sa"}}
			accounts, err := registry.New(registry.Config[core.ServiceAccount]{Kind: kind, Decoders: protobuf.Decoders[core.ServiceAccount]("ServiceAccount")})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, accounts.Close()) })
			tokens, err := registry.NewAction(registry.ActionConfig[authentication.TokenRequest]{
				Of: kind, Subresource: "token", Kind: registry.Kind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
				Decoders: protobuf.Decoders[authentication.TokenRequest]("TokenRequest"),
				Do: func(ctx context.Context, key string, r *authentication.TokenRequest, _ registry.WriteOptions) error {
					if _, err := accounts.Engine().Get(ctx, key, engine.GetOptions{Read: engine.Latest()}); err != nil {
						return err
					}
					r.Status = authentication.TokenRequestStatus{Token: "token of " + key, ExpirationTimestamp: meta.NewTime(time.Unix(1<<31, 0))}
					return nil
				},
			})
			require.NoError(t, err)
			_, cfg := served(t, serve.Config{Resources: []serve.Provider{accounts, tokens}})
			k := newKubectl(t, program, cfg.Host)
			k.run("create", "serviceaccount", "a")
			require.Equal(t, "token of default/a", k.run("create", "token", "a"))
			refused, err := k.try("", "create", "token", "b")
			require.Error(t, err)
			require.Contains(t, refused, `serviceaccounts "b" not found`)
		})
	}
}
