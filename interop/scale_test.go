package interop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/applyconfigurations"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
)

// A typed client scales Kubernetes' own kinds, in protobuf as it writes them, and applies scales.
func TestTypedClient_Scales(t *testing.T) {
	deployments, err := registry.New(registry.Config[apps.Deployment]{
		Kind:     registry.Kind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Decoders: protobuf.Decoders[apps.Deployment]("Deployment"),
		Apply:    apply.WithTypes(applyconfigurations.NewTypeConverter(scheme.Scheme)),
		Scale: &registry.Scale[apps.Deployment]{
			Replicas:    func(d *apps.Deployment) (int32, bool) { return *d.Spec.Replicas, true },
			SetReplicas: func(d *apps.Deployment, n int32) { d.Spec.Replicas = &n },
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, deployments.Close()) })
	_, cfg := served(t, serve.Config{Resources: []serve.Provider{deployments}})
	cfg.ContentType, cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	clients, err := typed.NewForConfig(cfg)
	require.NoError(t, err)
	c := clients.Deployments("default")

	_, err = c.Create(t.Context(), &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: "a"}, Spec: apps.DeploymentSpec{Replicas: new(int32(1))}}, meta.CreateOptions{})
	require.NoError(t, err)
	scale, err := c.GetScale(t.Context(), "a", meta.GetOptions{})
	require.NoError(t, err)
	scale.Spec.Replicas = 3
	now, err := c.UpdateScale(t.Context(), "a", scale, meta.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, autoscaling.ScaleSpec{Replicas: 3}, now.Spec)
	d, err := c.Get(t.Context(), "a", meta.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(3), *d.Spec.Replicas)

	_, err = c.UpdateScale(t.Context(), "a", &autoscaling.Scale{Spec: autoscaling.ScaleSpec{Replicas: 4}}, meta.UpdateOptions{})
	require.True(t, apierrors.IsBadRequest(err), "it has no name: %v", err)
	now, err = c.UpdateScale(t.Context(), "a", &autoscaling.Scale{ObjectMeta: meta.ObjectMeta{Name: "a"}, Spec: autoscaling.ScaleSpec{Replicas: 4}}, meta.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, int32(4), now.Spec.Replicas)
	wanted := applyautoscaling.Scale().WithSpec(applyautoscaling.ScaleSpec().WithReplicas(5))
	_, err = c.ApplyScale(t.Context(), "a", wanted, meta.ApplyOptions{FieldManager: "scaler"})
	require.True(t, apierrors.IsConflict(err), "the client of before owns it: %v", err)
	now, err = c.ApplyScale(t.Context(), "a", wanted, meta.ApplyOptions{FieldManager: "scaler", Force: true})
	require.NoError(t, err)
	require.Equal(t, int32(5), now.Spec.Replicas)
	d, err = c.Get(t.Context(), "a", meta.GetOptions{})
	require.NoError(t, err)
	owned, err := applyapps.ExtractDeploymentFrom(d, "scaler", "scale")
	require.NoError(t, err)
	require.Equal(t, int32(5), *owned.Spec.Replicas)
}
