package interop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// colored is the manifest of a widget that has a color besides.
func colored(name, size, color string) string {
	return manifest(name, size) + "  color: " + color + "\n"
}

func TestKubectl_AppliesOnTheServer(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		const applied = "widget.example.com/a serverside-applied\n"
		require.Equal(t, applied, k.with(colored("a", "1", "red"), "apply", "--server-side", "-f", "-"))
		before := k.run("get", "widget", "a", "-o", "jsonpath={.metadata.resourceVersion}")
		require.Equal(t, applied, k.with(colored("a", "1", "red"), "apply", "--server-side", "-f", "-"))
		require.Equal(t, before, k.run("get", "widget", "a", "-o", "jsonpath={.metadata.resourceVersion}"), "what changes nothing is not written")

		out, err := k.try(manifest("a", "2"), "apply", "--server-side", "--field-manager=other", "-f", "-")
		require.Error(t, err)
		require.Contains(t, out, "error: Apply failed with 1 conflict: conflict with \"kubectl\": .spec.size\n")
		require.Contains(t, out, "--force-conflicts")
		require.Equal(t, "widget.example.com/a serverside-applied (server dry run)\n",
			k.with(manifest("a", "2"), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "--dry-run=server", "-f", "-"))
		require.Equal(t, "1 red", k.run("get", "widget", "a", "-o", "jsonpath={.spec.size} {.spec.color}"))
		require.Equal(t, applied, k.with(manifest("a", "2"), "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"))
		require.Equal(t, "2 red", k.run("get", "widget", "a", "-o", "jsonpath={.spec.size} {.spec.color}"))

		require.NotContains(t, k.run("get", "widget", "a", "-o", "yaml"), "managedFields")
		shown := k.run("get", "widget", "a", "-o", "yaml", "--show-managed-fields")
		require.Contains(t, shown, "manager: other\n    operation: Apply\n")
		out, err = k.try(manifest("a", "2")+"  colour: red\n", "apply", "--server-side", "-f", "-")
		require.Error(t, err)
		require.Contains(t, out, "field not declared in schema")
	})
}

// kubectl that applies on the server takes over the fields that it has applied from the
// client: then a field that is no longer in the manifest is removed.
func TestKubectl_MovesToApplyOnTheServer(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		require.Equal(t, "widget.example.com/a created\n", k.with(colored("a", "1", "red"), "apply", "-f", "-"))
		require.Contains(t, k.run("get", "widget", "a", "-o", "yaml", "--show-managed-fields"), "manager: kubectl-client-side-apply\n    operation: Update\n")
		require.Equal(t, "widget.example.com/a serverside-applied\n", k.with(colored("a", "2", "red"), "apply", "--server-side", "-f", "-"))
		require.NotContains(t, k.run("get", "widget", "a", "-o", "yaml", "--show-managed-fields"), "kubectl-client-side-apply")
		require.Equal(t, "widget.example.com/a serverside-applied\n", k.with(manifest("a", "2"), "apply", "--server-side", "-f", "-"))
		require.Equal(t, "2 ", k.run("get", "widget", "a", "-o", "jsonpath={.spec.size} {.spec.color}"))
		require.Equal(t, "widget.example.com/a configured\n", k.with(manifest("a", "3"), "apply", "-f", "-"), "and back")
	})
}

func TestKubectl_AppliesStatus(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		k.with(manifest("a", "1"), "create", "-f", "-")
		status := strings.Replace(manifest("a", "1"), "spec:\n  size: 1\n", `status: {conditions: [{type: TYPE, status: "True", reason: Done, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`+"\n", 1)
		for manager, condition := range map[string]string{"one": "Ready", "two": "Idle"} {
			out := k.with(strings.Replace(status, "TYPE", condition, 1), "apply", "--server-side", "--subresource=status", "--field-manager="+manager, "-f", "-")
			require.Equal(t, "widget.example.com/a serverside-applied\n", out)
		}
		require.ElementsMatch(t, []string{"Ready", "Idle"}, strings.Fields(k.run("get", "widget", "a", "-o", "jsonpath={.status.conditions[*].type}")), "conditions merge by their type")
	})
}

// The Apply of client-go's dynamic client, and the conflict that it returns.
func TestDynamic_Applies(t *testing.T) {
	s := newServer(t)
	widgets := s.dynamic(t)
	w, err := widgets.Apply(t.Context(), "a", unstructuredWidget("a", 1), metav1.ApplyOptions{FieldManager: "one"})
	require.NoError(t, err)
	require.NotEmpty(t, w.GetUID())
	_, err = widgets.Apply(t.Context(), "a", unstructuredWidget("a", 2), metav1.ApplyOptions{FieldManager: "two"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict))
	w, err = widgets.Apply(t.Context(), "a", unstructuredWidget("a", 2), metav1.ApplyOptions{FieldManager: "two", Force: true})
	require.NoError(t, err)
	require.Len(t, w.GetManagedFields(), 2)
	_, err = widgets.Apply(t.Context(), "a", unstructuredWidget("a", 2), metav1.ApplyOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	status := unstructuredWidget("a", 9)
	status.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	w, err = widgets.ApplyStatus(t.Context(), "a", status, metav1.ApplyOptions{FieldManager: "two"})
	require.NoError(t, err)
	size, _, err := unstructured.NestedInt64(w.Object, "spec", "size")
	require.NoError(t, err)
	require.EqualValues(t, 2, size)
}

// The Apply of controller-runtime's client, as reconcilers use it: each owner applies its
// own fields, and gives one up by leaving it out.
func TestControllerRuntime_Applies(t *testing.T) {
	s := newServer(t)
	c, err := client.New(rest.CopyConfig(s.cfg), client.Options{Scheme: widgetScheme()})
	require.NoError(t, err)
	applyAs := func(owner string, spec map[string]any, opts ...client.ApplyOption) error {
		w := unstructuredWidget("a", 0)
		w.SetNamespace("default")
		w.Object["spec"] = spec
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(w), append(opts, client.FieldOwner(owner))...)
	}
	now := func() WidgetSpec {
		var w Widget
		require.NoError(t, c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "a"}, &w))
		return w.Spec
	}
	require.NoError(t, applyAs("sizer", map[string]any{"size": int64(3)}))
	require.NoError(t, applyAs("painter", map[string]any{"color": "red"}))
	require.Equal(t, WidgetSpec{Size: 3, Color: "red"}, now())
	require.True(t, apierrors.IsConflict(applyAs("painter", map[string]any{"size": int64(4)})))
	require.NoError(t, applyAs("painter", map[string]any{"size": int64(4)}, client.ForceOwnership))
	require.Equal(t, WidgetSpec{Size: 4}, now())
	require.NoError(t, applyAs("sizer", map[string]any{}))
	require.Equal(t, WidgetSpec{Size: 4}, now(), "the size is the painter's now")
}
